#!/usr/bin/env python3
"""fuzz.py PROGRAM [--seconds N] [--seed FIRST] [--processes N] [--record]: random programs, and what is wrong with them.

Seeds count up from where the table in docs/RELIABILITY.md ends; --record adds a line to it. Blocks of seeds run in processes of their own,
one a core, with one cache of kernels; every eighth generates code at the usual level, the others at level 0, which is quick. Every 16th
runs on two threads or four, which share the smallest kernels; those that are interpreted run on one.
What is found is shrunk and written to tests/fuzz/programs/, where test_fuzz runs it from then on.
"""
import argparse
import collections
import datetime
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/RELIABILITY.md"
FOUND = ROOT / "tests/fuzz/programs"
BLOCK = 1000
HEADER = "| date | seeds | programs | found | a second |"
ROW = re.compile(r"^\| (\d{4}-\d\d-\d\d) \| (\d+) to (\d+) \| (\d+) \| (\d+) \|.*\|$", re.M)


def environment_for(first, folder):
    block = first // BLOCK
    threads = 1 if block % 16 != 5 else 2 if block % 32 == 5 else 4
    return os.environ | {
        "SINTER_FUZZ_SEED": str(first), "SINTER_FUZZ_FOUND": str(FOUND), "SINTER_FUZZ_PROGRESS": str(folder / f"progress-{first}"),
        "SINTER_CACHE_DIR": str(folder / "cache"), "SINTER_CACHE_MB": "256",
        "SINTER_CODEGEN_LEVEL": "2" if block % 8 == 0 else "0", "SINTER_SPLIT": str(int(threads > 1)),
        "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}


def run(program, **arguments):
    return subprocess.Popen([program, "--gtest_filter=Programs.Random"], **arguments)


class Block:
    """Seeds that a process of its own goes through."""

    def __init__(self, program, first, seconds, folder):
        self.program, self.first, self.folder = program, first, folder
        self.output = open(folder / f"output-{first}", "w+", encoding="utf-8")
        environment = environment_for(first, folder) | {"SINTER_FUZZ_COUNT": str(BLOCK), "SINTER_FUZZ_SECONDS": str(max(seconds, 1))}
        self.process = run(program, env=environment, stdout=self.output, stderr=subprocess.STDOUT)

    def current(self):
        """The seed that it is at."""
        progress = self.folder / f"progress-{self.first}"
        return int(progress.read_text(encoding="utf-8") or self.first) if progress.exists() else self.first

    def stop(self):
        """Returns what finish() does."""
        self.process.kill()
        self.process.wait()
        self.output.close()
        return self.current() - self.first, self.current() - 1, 0, collections.Counter()

    def finish(self):
        """Returns (programs, last seed, found, programs by kind)."""
        self.output.seek(0)
        output = self.output.read()
        self.output.close()
        done = re.search(r"^programs (\d+) seeds \d+\.\.(\d+) seconds \S+ found (\d+)$", output, re.M)
        kinds = collections.Counter({name: int(n) for name, n in re.findall(r"^kind (\w+) programs (\d+)", output, re.M)})
        if self.process.returncode or not done:
            print(output, flush=True)
        if done:
            return int(done[1]), int(done[2]), int(done[3]), kinds
        # It died: the program at which it did runs again, each try in a process of its own.
        print(f"ended with status {self.process.returncode} at seed {self.current()}", flush=True)
        run(self.program, env=environment_for(self.current(), self.folder) | {"SINTER_FUZZ_COUNT": "1", "SINTER_FUZZ_APART": "1"}).wait()
        return self.current() - self.first + 1, self.current(), 1, kinds


def record(line):
    """Adds it to the table; returns the rows."""
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    table = lines.index(HEADER) + 2
    while ROW.match(lines[table]):
        table += 1
    lines.insert(table, line)
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    return ROW.findall("\n".join(lines))


def stopped(number, frame):
    raise KeyboardInterrupt


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
    began, following, running, results = time.time(), first, [], []
    left = lambda: args.seconds - (time.time() - began)
    signal.signal(signal.SIGTERM, stopped)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files are many
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        try:
            while running or left() > 0:
                while len(running) < args.processes and left() > 0:
                    running.append(Block(args.program, following, left(), pathlib.Path(folder)))
                    following += BLOCK
                time.sleep(0.2)
                for block in [b for b in running if b.process.poll() is not None]:
                    running.remove(block)
                    results.append(block.finish())
        except KeyboardInterrupt:
            results += [block.stop() for block in running]
    programs, last, found = sum(r[0] for r in results), max((r[1] for r in results), default=first), sum(r[2] for r in results)
    rate = programs / (time.time() - began)
    kinds = sum((r[3] for r in results), collections.Counter())
    print("  ".join(f"{name} {n}" for name, n in sorted(kinds.items())))
    print(f"{programs} programs, seeds {first} to {last}, {rate:.0f} a second, {found} found")
    if args.record:
        rows = record(f"| {datetime.date.today()} | {first} to {last} | {programs} | {found} | {rate:.0f} |")
        since = [int(row[3]) for row in rows[max((i + 1 for i, row in enumerate(rows) if row[4] != "0"), default=0):]]
        print(f"{sum(int(row[3]) for row in rows)} programs in all, the last {sum(since)} without a difference")
    sys.exit(bool(found))


main()
