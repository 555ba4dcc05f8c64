#!/usr/bin/env python3
"""lint.py: checks that need no compiler. Prints what is wrong, one line a finding, and ends with `N passed, N failed` (checks)."""
import pathlib
import re
import subprocess
import sys

import check_layers

CODE = (".h", ".cpp", ".def")
FOLDERS = ("include", "src", "tests", "examples", "bench", "tools", "docs", "cmake", ".ci")
FOLDER_PAGE_LINES = 30  # a folder's README: what lives here, what it may include, how to add one
FORMATTER = "clang-format-19"  # another version formats differently


def files(*suffixes, under=FOLDERS):
    """The project's text files with these suffixes; those of the root folder too when `under` is everything."""
    found = [f for folder in under for f in pathlib.Path(folder).rglob("*") if f.is_file()]
    if under is FOLDERS:
        found += [f for f in pathlib.Path(".").iterdir() if f.is_file()]
    return sorted(f for f in found if not suffixes or f.suffix in suffixes)


def lines(file):
    return enumerate(file.read_text(errors="replace").splitlines(), 1)


def layers():
    yield from check_layers.violations(pathlib.Path("src"))


def formatting():
    sources = [f for f in files(".h", ".cpp") if f.parts[0] != "docs"]
    done = subprocess.run([FORMATTER, "--dry-run", "--Werror", *sources], stderr=subprocess.PIPE, text=True, check=False)
    bad = dict.fromkeys(re.findall(r"^([^:\n]+):\d+:\d+: error", done.stderr, re.M))
    yield from (f"{file}: not formatted; run ./dev fmt" for file in bad)
    if done.returncode and not bad:
        yield done.stderr


def tabs_and_trailing_space():
    for file in files(*CODE, ".md", ".py", ".cmake", ".txt"):
        for number, line in lines(file):
            if "\t" in line or line != line.rstrip():
                yield f"{file}:{number}: a tab or trailing space"


def folder_pages():
    for file in files(".md"):
        length = len(file.read_text().splitlines())
        if file.name == "README.md" and len(file.parts) > 1 and length > FOLDER_PAGE_LINES:
            yield f"{file}: {length} lines; a folder's page has at most {FOLDER_PAGE_LINES}"


def header_comments():
    for file in files(".h", under=("include", "src", "tests")):
        if not file.read_text().startswith("//"):
            yield f"{file}: a header opens with one sentence on what it is"


def public_includes():
    """Public headers bring in the standard library and each other, nothing else."""
    for file in files(".h", ".def", under=("include",)):
        for number, line in lines(file):
            found = re.match(r'\s*#\s*include ([<"].*?[>"])', line)
            if found and not re.fullmatch(r'<[a-z_]+>|"sinter/[a-z_/]+\.(h|def)"', found[1]):
                yield f"{file}:{number}: a public header may not include {found[1]}"


def llvm_includes():
    for file in files(*CODE):
        for number, line in lines(file):
            if re.match(r'\s*#\s*include [<"]llvm', line) and "backends/llvm" not in file.as_posix():
                yield f"{file}:{number}: LLVM belongs to src/backends/llvm alone"


def words():
    """Machine paths, and promises instead of work."""
    pattern = re.compile(r"/" + r"work/|/" + r"home/|\bTO" + r"DO\b|\bFIX" + r"ME\b|\bX" + r"XX\b")
    for file in files(*CODE, ".md", ".py", ".cmake", ".txt", ""):
        for number, line in lines(file):
            if pattern.search(line):
                yield f"{file}:{number}: {pattern.search(line)[0]} does not belong here"


def main():
    failed = 0
    checks = (layers, formatting, tabs_and_trailing_space, folder_pages, header_comments, public_includes, llvm_includes, words)
    for check in checks:
        found = list(check())
        print(f"{check.__name__:<24} {f'{len(found)} findings' if found else 'ok'}", *(f"  {f}" for f in found), sep="\n")
        failed += bool(found)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
