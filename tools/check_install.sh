#!/usr/bin/env bash
# check_install.sh BUILD: installs a build into a temporary folder and builds the first example against it, by CMake and by pkg-config.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cmake --install "$1" --prefix "$place/prefix" >/dev/null
mkdir "$place/user"
cat >"$place/user/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(user CXX)
find_package(sinter 0.1 REQUIRED)
add_executable(user main.cpp)
target_link_libraries(user sinter::sinter)
TEXT
cp "$root/examples/01_seed.cpp" "$place/user/main.cpp"
cmake -S "$place/user" -B "$place/user/build" -G Ninja -DCMAKE_PREFIX_PATH="$place/prefix" >/dev/null
ninja -C "$place/user/build" >/dev/null
read -ra flags < <(PKG_CONFIG_PATH=$(dirname "$(find "$place/prefix" -name sinter.pc)") pkg-config --cflags --libs sinter)
c++ "$place/user/main.cpp" "${flags[@]}" -Wl,-rpath,"$(dirname "$(find "$place/prefix" -name libsinter.so)")" -o "$place/user/plain"
SINTER_CACHE_DIR=$place/cache "$place/user/plain" | grep -q 'array(2.36788, dtype=float32)'
SINTER_CACHE_DIR=$place/cache "$place/user/build/user" | grep -q 'array(2.36788, dtype=float32)'
echo "the installed package works"
