"""replay.py BENCH FOLDER: the kernels of the benchmark's workloads as text, in FOLDER, a file each; and what of them changed since the last time.

Shows what a change of the library does to the code that it makes, before anything is measured."""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile


def summary(text):
    """Kernels, and their instructions."""
    return f"{len(re.findall(r'^kernel ', text, re.M))} kernels, {len(re.findall(r'^ *%', text, re.M))} instructions"


def main():
    bench, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    first = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    changed = 0
    with tempfile.TemporaryDirectory() as new:
        subprocess.run([bench, "--kernels", new], check=True)
        for file in sorted(pathlib.Path(new).iterdir()):
            now, old = file.read_text(), folder / file.name
            before = old.read_text() if old.exists() else ""
            if now != before and not first:
                changed += 1
                print(f"{file.stem}: {summary(before)} -> {summary(now)}")
                sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True), "before", "now", n=1))
            old.write_text(now)
    print(f"kernels of the benchmark: written to {folder}" if first else f"{changed} workloads have other kernels than the last time")


main()
