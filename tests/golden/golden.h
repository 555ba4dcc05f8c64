// Golden: test cases as text files. A file holds cases one after the other; a case is
//
//   ;; run: simplify, fold | outcome=same
//   graph name(%0: float32[4]) { ... }
//   ;; expect
//   graph name(%0: float32[4]) { ... }
//
// `run` names steps: passes of pipeline.cpp, `pipeline` (all of them), `vjp`, `jvp`, `vmap` (of all inputs), `graph` or `kernel` (parse,
// verify and print alone), `interpret` (print the values instead of the graph). Options after `|`: `outcome=same` interprets before and
// after and compares bits; `fast` allows fast_math. Other lines that open with `;;` are comments and stay. To add a case, write the first
// two parts and bless: SINTER_BLESS=1 test_golden writes what it got as what it expects.
#pragma once
#include <string>
#include <vector>

namespace sinter::golden {

struct Case {
  std::string comment;  // lines before `;; run:`
  std::vector<std::string> steps, options;
  std::string run_line, input, expected;
  bool has_expected = false;
};

std::vector<Case> read_cases(const std::string& text);
std::string write_cases(const std::vector<Case>& cases);
/// What the case gives. Throws InternalError when a check on the way fails (verify, round trip, outcome).
std::string run_case(const Case& c);
/// Lines of both texts, those that differ marked with - (expected) and + (got).
std::string diff(const std::string& expected, const std::string& got);

}  // namespace sinter::golden
