// Program: what the fuzzer runs, as data that prints to text and parses back. One form for every kind: arrays in several roles, a function
// of steps over them, and the calls to make. A step is a public function (steps.cpp), or a graph over the tables of operations.
//
//   ;; anything: a comment
//   program paths compiled shapeless | seed 7 wrap 1     the check; for paths: how it runs, besides as a regular call: compiled, unfused,
//                                                        unsimplified, interpreted, shapeless, shapeless_interpreted, disk (compiled, by
//                                                        kernels that a cache on disk has), reference (graphs by graph/interpret.h)
//   %0 argument float32 [n, 5] gaps special              id, role, type (n, m: sizes of the call), layout, -0 NaN ... among the values
//   %1 state float32 [n] same %0                         in even calls the same array as %0
//   call 3 4 number 2 hold                               n, m, a static argument, flags
//   %2 = add %0 %1
//   %3 = grad %2 {1} (%4) { %5 = sin %4 return %5 }      numbers that say how; a function of its own, which sees what is outside, too
//   return %2 %3
//   graph g(...) { ... }                                 what `%6 = graph %0 {0}` runs: the first of them
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "support/graphs.h"

namespace sinter::fuzz {

/// argument: by const reference; given: by value; state: read and written; capture: held by value in the callable.
enum class Role { argument, given, state, capture };
inline constexpr const char* kRoles[] = {"argument", "given", "state", "capture"};
inline constexpr const char* kMemoryNames[] = {"plain", "reversed_axes", "gaps", "backwards"};

struct Leaf {
  int id = 0;
  Role role = Role::argument;
  Dtype dtype = Dtype::float32;
  std::vector<int> dims;  // kSizeN, kSizeM: a size of the call
  tests::Memory memory = tests::Memory::plain;
  bool special = false;
  int same = -1;  // the leaf whose array it is in even calls
  static constexpr int kSizeN = -1, kSizeM = -2;
};

/// One call of the function.
struct Call {
  std::array<std::int64_t, 2> sizes{1, 1};
  int number = 0;     // a static argument
  bool fail = false;  // `fail` steps throw
  bool hold = false;  // the caller holds the arrays of the state, which must stay as they are
  bool move = false;  // `given` arrays are handed over; otherwise they must stay as they are
};

struct Step;
struct Function {
  std::vector<int> parameters, results;
  std::vector<Step> steps;
};
struct Step {
  int id = 0;
  std::string name;
  std::vector<int> in;
  std::vector<std::int64_t> numbers = {};
  std::vector<Function> bodies = {};
};

struct Program {
  std::string check = "paths";
  std::vector<std::string> ways;
  std::uint32_t seed = 0;  // of the values
  int wrap = 0;            // how the callable holds its captures
  std::vector<Leaf> leaves;
  std::vector<Call> calls;
  Function function;
  std::vector<graph::Graph> graphs;
};

/// parse(print(p)) prints the same. Throws Error with line and column.
std::string print(const Program& p);
Program parse(std::string_view text);

/// A program that runs this graph once, on arguments. Throws where the graph is not in order.
Program program_of(graph::Graph g, std::string check, std::vector<std::string> ways, std::uint32_t seed);

/// The program of a seed, which has a kind: function, graph, gradient, composition, derivatives or batches.
Program draw(std::uint32_t seed);
std::string kind_of(std::uint32_t seed);

/// What is wrong with the program, by its check; empty: nothing. Exceptions count.
std::string wrong(const Program& p);
/// The same in a process of its own, so that a crash or a hang is an answer, too.
std::string wrong_apart(const Program& p);

/// A smaller program with which something is wrong as well, by `wrong`; stops after so many seconds.
Program shrink(Program p, FunctionRef<std::string(const Program&)> wrong, double seconds);

}  // namespace sinter::fuzz
