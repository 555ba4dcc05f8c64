#!/bin/sh
# run.sh COMPILER FILE INCLUDE...: succeeds when FILE does not compile and the errors match its first line, `// expect: REGEX`.
# A file that fails at an #include fails the test.
compiler=$1
file=$2
shift 2
flags=
for directory in "$@"; do flags="$flags -I$directory"; done
expect=$(sed -n '1s,^// expect: ,,p' "$file")
if [ -z "$expect" ]; then
  echo "$file: the first line must be '// expect: REGEX'"
  exit 1
fi
# shellcheck disable=SC2086
if output=$("$compiler" -std=c++20 -Wall -Werror -fsyntax-only $flags "$file" 2>&1); then
  echo "$file: compiles, and must not"
  exit 1
fi
if echo "$output" | grep -q "fatal error"; then
  echo "$output"
  exit 1
fi
if ! echo "$output" | grep -E "error|required|note" | grep -qE "$expect"; then
  echo "$file: the errors do not match: $expect"
  echo "$output"
  exit 1
fi
