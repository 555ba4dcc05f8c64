#!/usr/bin/env python3
"""fuzz.py PROGRAM [--seconds N] [--seed FIRST] [--processes N] [--record]: random programs, and what is wrong with them.

Seeds count up from where the table in docs/RELIABILITY.md ends; --record adds a line to it. Blocks of seeds run in processes of their own,
one a core, with one cache of kernels; every eighth generates code at the usual level, the others at level 0, which is quick.
What is found is shrunk and written to tests/fuzz/programs/, where test_fuzz runs it from then on.
"""
import argparse
import collections
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/RELIABILITY.md"
FOUND = ROOT / "tests/fuzz/programs"
BLOCK = 1000
ROW = re.compile(r"^\| (\d{4}-\d\d-\d\d) \| (\d+) to (\d+) \| (\d+) \| (\d+) \|.*\|$", re.M)


def start(program, first, seconds, folder):
    progress = pathlib.Path(folder) / f"progress-{first}"
    environment = os.environ | {
        "SINTER_FUZZ_SEED": str(first), "SINTER_FUZZ_COUNT": str(BLOCK), "SINTER_FUZZ_SECONDS": str(max(seconds, 1)),
        "SINTER_FUZZ_FOUND": str(FOUND), "SINTER_FUZZ_PROGRESS": str(progress), "SINTER_CACHE_DIR": str(pathlib.Path(folder) / "cache"), "SINTER_CACHE_MB": "128",
        "SINTER_CODEGEN_LEVEL": "2" if first // BLOCK % 8 == 0 else "0", "OMP_NUM_THREADS": "1"}
    output = open(pathlib.Path(folder) / f"output-{first}", "w+", encoding="utf-8")
    process = subprocess.Popen([program, "--gtest_filter=Programs.Random"], stdout=output, stderr=subprocess.STDOUT, env=environment)
    return {"first": first, "process": process, "output": output, "progress": progress}


def finish(block, program):
    """Returns (programs, last seed, found, programs by kind)."""
    block["output"].seek(0)
    output = block["output"].read()
    block["output"].close()
    done = re.search(r"^programs (\d+) seeds \d+\.\.(\d+) seconds \S+ found (\d+)$", output, re.M)
    kinds = collections.Counter({name: int(n) for name, n in re.findall(r"^kind (\w+) programs (\d+)", output, re.M)})
    if block["process"].returncode or not done:
        print(output)
    if done:
        return int(done[1]), int(done[2]), int(done[3]), kinds
    # It died: the seed at which it did is run again, each try in a process of its own.
    last = int(block["progress"].read_text() or block["first"]) if block["progress"].exists() else block["first"]
    print(f"ended with status {block['process'].returncode} at seed {last}", flush=True)
    subprocess.run([program, "--gtest_filter=Programs.Random"], check=False, env=os.environ | {
        "SINTER_FUZZ_SEED": str(last), "SINTER_FUZZ_COUNT": "1", "SINTER_FUZZ_APART": "1", "SINTER_FUZZ_FOUND": str(FOUND)})
    return last - block["first"] + 1, last, 1, kinds


def main():
    parser = argparse.ArgumentParser(prog="dev fuzz")
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="the first one")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--record", action="store_true", help="add a line to the table in docs/RELIABILITY.md")
    args = parser.parse_args()
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    first = args.seed or max((int(row[2]) for row in rows), default=0) + 1
    began, following, last, programs, found, kinds = time.time(), first, first, 0, 0, collections.Counter()
    running = []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        while running or time.time() - began < args.seconds:
            while len(running) < args.processes and time.time() - began < args.seconds:
                running.append(start(args.program, following, args.seconds - (time.time() - began), folder))
                following += BLOCK
            time.sleep(0.2)
            for block in [b for b in running if b["process"].poll() is not None]:
                running.remove(block)
                n, to, wrong, by_kind = finish(block, args.program)
                programs, found, last, kinds = programs + n, found + wrong, max(last, to), kinds + by_kind
    rate = programs / (time.time() - began)
    print("  ".join(f"{name} {n}" for name, n in sorted(kinds.items())))
    print(f"{programs} programs, seeds {first} to {last}, {rate:.0f} a second, {found} found")
    if args.record:
        line = f"| {datetime.date.today()} | {first} to {last} | {programs} | {found} | {rate:.0f} |"
        text = PAGE.read_text(encoding="utf-8")
        at = text.index("\n", text.index("|---|---|---|---|---|", text.index("| date |"))) + 1 if not rows else text.rindex(rows[-1][0])
        at = text.index("\n", at - 1) + 1 if rows else at
        text = text[:at] + line + "\n" + text[at:]
        PAGE.write_text(text, encoding="utf-8")
        rows = ROW.findall(text)
        print(f"{sum(int(row[3]) for row in rows)} programs in all, {sum(int(row[4]) for row in rows)} found")
    sys.exit(bool(found))


main()
