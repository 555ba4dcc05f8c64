#!/usr/bin/env python3
"""cache.py [list|clear]: the kernels and plans that are kept on disk. Without a word: where, how many, how large.

list: a line for each kernel, last used first: date, bytes of the file, bytes of code, processor, the kernel's name. clear: removes all.
"""
import datetime
import os
import pathlib
import re
import struct
import sys

FILE = struct.Struct("<8sQQQ")  # magic, checksum, bytes of key and value: src/runtime/disk_cache.cpp
IMAGE = struct.Struct("<QQQ")   # bytes of the name, entry, alignment: src/engine/kernel_file.cpp


def directory():
    """As src/runtime/disk_cache.cpp finds it."""
    for variable, rest in (("SINTER_CACHE_DIR", ""), ("XDG_CACHE_HOME", "sinter"), ("HOME", ".cache/sinter")):
        if os.environ.get(variable):
            return pathlib.Path(os.environ[variable]) / rest
    sys.exit("cache: there is none; set SINTER_CACHE_DIR, XDG_CACHE_HOME or HOME")


def files(kind):
    """The files of values, last used first, and temporary ones that killed processes have left."""
    found = [f for f in (directory() / kind).glob("*/*") if re.fullmatch(r"[0-9a-f]{16}|\.new-[0-9a-f]+", f.name) and f.is_file() and not f.is_symlink()]
    return sorted(found, key=lambda f: f.stat().st_mtime, reverse=True)


def describe(file):
    """Bytes of code, processor, name; what cannot be read is described as that."""
    data = file.read_bytes()
    try:
        _, _, key_bytes, _ = FILE.unpack_from(data)
        value = data[FILE.size + key_bytes:]
        _, processor, *_ = data[FILE.size:FILE.size + key_bytes].decode().split("\n", 2)
        name_bytes, _, _ = IMAGE.unpack_from(value)
        name = value[IMAGE.size:IMAGE.size + name_bytes].decode()
        return len(value) - IMAGE.size - name_bytes, processor.split(" ", 1)[0], name
    except (struct.error, ValueError):
        return 0, "", "not a kernel"


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else "size"
    kernels, plans = files("kernels"), files("plans")
    if command == "list":
        for file in kernels:
            code, processor, name = describe(file)
            used = datetime.datetime.fromtimestamp(file.stat().st_mtime)
            print(f"{used:%Y-%m-%d %H:%M}  {file.stat().st_size:8}  {code:8}  {processor:10}  {name}")
    elif command == "clear":
        for file in kernels + plans:
            file.unlink()
        kernels = plans = []
    elif command != "size":
        sys.exit(__doc__)
    total = sum(file.stat().st_size for file in kernels + plans)
    print(f"{directory()}: {len(kernels)} kernels, {len(plans)} plans, {total / 1e6:.1f} MB")


main()
