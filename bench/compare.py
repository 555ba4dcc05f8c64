"""./dev bench --peers, --check, --write: sinter_bench beside other frameworks, targets, the documentation's tables.

Here the processes of sinter_bench --serve and of peers.py take turns: in every round each way to run a workload is called for a while,
and medians over all rounds count. Ways that are far behind after the first round sit out the rest.
"""
import argparse
import importlib.metadata
import importlib.util
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile

import report

BENCH = "build/sinter_bench"
LOG = "build/peers.log"  # what the frameworks say, and why a way is left out
PEERS = [name for name in ("torch", "jax", "mlx") if importlib.util.find_spec(name)]
ROUNDS, TURN_MS = 7, 60
FAR_BEHIND = 2.5  # times the fastest peer's time
KEPT = "TORCHINDUCTOR_CACHE_DIR"
PATIENCE = 240  # seconds for one answer


class Worker:
    """A process that answers requests, see serve.cpp."""

    def __init__(self, command, threads, scratch):
        # Caches of compiled code live in TMPDIR or are told to: first calls find nothing. One that the caller names saves minutes.
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="", TMPDIR=scratch,
                   SINTER_CACHE_DIR=scratch, **{KEPT: os.environ.get(KEPT, f"{scratch}/inductor")})
        if "mlx" in command:
            env["LD_PRELOAD"] = "libopenblas.so.0"  # its package has the reference BLAS, a hundred times slower
        cores = sorted(os.sched_getaffinity(0))[:threads]  # jax takes as many threads as it may use cores
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(LOG, "a"), text=True,
                                        env=env, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        self.name = command[-2] if command[-1].isdigit() else "sinter"

    def ask(self, request):
        """The words of the answer; none from a process that ended or is stuck."""
        try:
            print(request, file=self.process.stdin, flush=True)
            if select.select([self.process.stdout], [], [], PATIENCE)[0]:
                return self.process.stdout.readline().split()
        except BrokenPipeError:
            pass
        print(f"compare: {self.name} does not answer `{request}`", file=sys.stderr)
        self.stop()
        return []

    def stop(self):
        self.process.kill()
        self.process.wait()


def first_call(row, threads):
    """Of ours, in new processes without cached kernels."""
    times = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            env = dict(os.environ, OMP_NUM_THREADS=str(threads), SINTER_CACHE_DIR=cache)
            times.append(float(subprocess.run([BENCH, "--first", row], env=env, capture_output=True, text=True, check=True).stdout))
    return statistics.median(times)


def turns(owners, rounds):
    """Milliseconds for each way, given the process of each."""
    times = {way: [] for way in owners}
    resting = set()
    for number in range(rounds):
        ways = [way for way in owners if way not in resting]
        for way in ways[number % len(ways):] + ways[:number % len(ways)]:
            answer = [float(word) for word in owners[way].ask(f"turn {way} {TURN_MS}")]
            times[way] += answer[1:] if len(answer) > 2 else answer  # the first finds cold caches and sleeping threads
        if number == 0:
            peers = {way: min(times[way]) for way in ways if way not in ("sinter", "copy") and times[way]}
            resting = {way for way, ms in peers.items() if ms > FAR_BEHIND * min(peers.values())}
    return {way: statistics.median(t) for way, t in times.items() if t}


def compare_row(row, threads, ours, peers, rounds):
    """A JSON line, or None where no peer has the workload."""
    owners, first = {}, {}
    for worker in [*peers, ours]:
        for word in worker.ask(f"row {row}") if owners or worker is not ours else ():
            way, ms = word.split("=")
            owners[way], first[way] = worker, float(ms)
    if "sinter" not in owners:
        return None
    compiling = {way: ms for way, ms in first.items() if way.endswith("_compiled")}
    if KEPT in os.environ:
        compiling.pop("torch_compiled", None)  # it may have found its code there
    line = {"work": row, "device": "cpu", "threads": threads, "first_call_ms": round(first_call(row, threads), 2),
            "peer_first_call_ms": compiling}
    if row.startswith("compile_"):  # the time of compiling counts
        line |= {"sinter_ms": line["first_call_ms"], "peer_ms": line["peer_first_call_ms"]}
    else:
        ms = {way: round(ms, 5) for way, ms in turns(owners, rounds).items()}
        line |= {"sinter_ms": ms.pop("sinter"), "copy_ms": ms.pop("copy"), "peer_ms": ms}
    line["best_peer"] = min(line["peer_ms"], key=line["peer_ms"].get)
    line["peer"] = round(line["peer_ms"][line["best_peer"]] / line["sinter_ms"], 3)
    line["versions"] = {name: importlib.metadata.version(name) for name in PEERS}
    return line


def compare(rows, threads, rounds):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        ours = Worker([BENCH, "--serve"], threads, scratch)
        peers = [Worker([sys.executable, "-B", "bench/peers.py", name, str(threads)], threads, scratch) for name in PEERS]
        for row in rows:
            line = compare_row(row, threads, ours, [p for p in peers if p.process.poll() is None], rounds)
            if line:
                yield line
        for worker in [ours, *peers]:
            worker.stop()


def measure(options):
    command = [BENCH, "--json"] + ["--quick"] * options.quick + (["--only", options.only] if options.only else [])
    command += ["--threads", options.threads] if options.threads else []
    if options.check or options.write or not options.peers:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bench:
            yield from map(json.loads, bench.stdout)
    if options.peers:
        rows = options.only.split(",") if options.only else report.targets()
        for threads in (options.threads or str(min(2, os.cpu_count()))).split(","):
            yield from compare(rows, int(threads), 3 if options.quick else ROUNDS)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="take turns with torch, jax and mlx; on two threads unless --threads")
    parser.add_argument("--check", action="store_true", help="fail where a target is missed: bench/targets.txt")
    parser.add_argument("--write", action="store_true", help="put the tables into the documentation")
    parser.add_argument("--from", dest="lines", nargs="+", metavar="FILE", help="take JSON lines of earlier runs, the last of each row")
    parser.add_argument("--json", action="store_true", help="JSON lines alone")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", metavar="ROW,ROW")
    parser.add_argument("--threads", metavar="N,N")
    options = parser.parse_args()
    lines = []
    for line in report.read(options.lines) if options.lines else measure(options):
        lines.append(line)
        if not options.lines:
            print(json.dumps(line), flush=True)
    if not options.json:
        print(report.peers_text(lines))
    if options.write:
        report.write(lines)
    return report.check(lines, options.only) if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
