#!/usr/bin/env python3
"""doc_blocks.py OUT PAGE...: writes one GoogleTest program out of every ```cpp block of the pages, one test a block.

Each block stands in a namespace of its own. Its #include lines move to the top; a block without `int main()` is a function's body.
A ```text block that follows, before the next ```cpp block, is what the block must print; a `...` in it stands for any text.
A block that throws, or prints something else, fails. There is no way to leave a block out: what a page shows is true.
"""
import pathlib
import re
import sys

PRELUDE = r"""// Written by tools/doc_blocks.py.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

namespace {

std::string trimmed(std::string s) {
  std::string out;
  for (std::size_t at = 0; at < s.size();) {
    std::size_t end = std::min(s.find('\n', at), s.size());
    std::string line = s.substr(at, end - at);
    line.erase(line.find_last_not_of(" \t") + 1);
    out += line + '\n';
    at = end + 1;
  }
  out.erase(out.find_last_not_of('\n') + 1);
  return out;
}

// `...` in `want` stands for any text.
bool matches(const std::string& want, const std::string& got) {
  std::size_t at = 0, from = 0;
  for (bool first = true;; first = false) {
    std::size_t hole = want.find("...", from);
    std::string piece = want.substr(from, hole == std::string::npos ? hole : hole - from);
    if (hole == std::string::npos) return first ? got == piece : got.size() >= at + piece.size() && got.ends_with(piece);
    std::size_t found = got.find(piece, at);
    if (found == std::string::npos || (first && found != 0)) return false;
    at = found + piece.size(), from = hole + 3;
  }
}

template <class F>
void check(F run, bool compare, const std::string& want) {
  std::cout.flush();
  testing::internal::CaptureStdout();
  std::string thrown;
  try {
    run();
  } catch (const std::exception& e) {
    thrown = e.what();
  }
  std::cout.flush();
  std::string got = testing::internal::GetCapturedStdout();
  EXPECT_EQ(thrown, "") << "the block threw";
  if (compare && !matches(trimmed(want), trimmed(got))) {
    ADD_FAILURE() << "the page says\n" << want << "\nthe block prints\n" << got;
  }
}

}  // namespace
"""


def blocks(page):
    """Yields (line number, code, expected output or None) for each ```cpp block of a page."""
    found, kind, start, lines = [], None, 0, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = re.match(r"\s*```(\w*)", line)
        if not fence:
            lines.append(line)
        elif kind is None:
            kind, start, lines = fence[1] or "plain", number, []
        else:
            if kind == "cpp":
                found.append([start, "\n".join(lines), None])
            elif kind == "text" and found and found[-1][2] is None:
                found[-1][2] = "\n".join(lines)
            kind = None
    if kind is not None:
        sys.exit(f"{page}:{start}: this block has no end")
    return found


def main():
    includes, tests = {}, []
    for name in sys.argv[2:]:
        page = pathlib.Path(name)
        for line, code, want in blocks(page):
            includes.update(dict.fromkeys(re.findall(r"^#include .*$", code, re.M)))
            code = re.sub(r"^#include .*$", "", code, flags=re.M)  # an empty line stays, so that line numbers do
            # A main may end without a return; another function may not.
            code, is_program = re.subn(r"^int main\(\)(.*?)^}", r"int example_main()\1return 0; }", code, flags=re.M | re.S)
            where = f'#line {line + 1} "{page}"\n'
            space = "doc_" + re.sub(r"\W", "_", page.stem) + f"_{line}"
            body = f"{where}{code}\n" if is_program else f"void example_main() {{\n{where}{code}\n}}\n"
            raw = f'R"doc({want or ""})doc"'
            tests.append(f"namespace {space} {{\n{body}}}  // namespace {space}\n"
                         f"TEST({page.stem}, line_{line}) {{ check({space}::example_main, {str(want is not None).lower()}, {raw}); }}\n")
    text = PRELUDE + "\n".join(includes) + "\n\n" + "\n".join(tests)
    pathlib.Path(sys.argv[1]).write_text(text)


main()
