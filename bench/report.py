"""What is made of the benchmark's JSON lines: tables, a picture, and the verdict on targets.txt."""
import datetime
import json
import operator
import pathlib
import re

FOLDER = pathlib.Path(__file__).parent
DOCS = FOLDER.parent / "docs"
PERFORMANCE, PICTURE, README = DOCS / "PERFORMANCE.md", DOCS / "peers.svg", FOLDER.parent / "README.md"
PEERS = {"torch": "PyTorch", "jax": "JAX", "mlx": "MLX"}


def read(files):
    """Lines of several files, in the order of the targets; of equal workload, threads and kind the last."""
    lines = {}
    for file in files:
        for text in pathlib.Path(file).read_text().splitlines():
            if text.startswith("{"):
                line = json.loads(text)
                lines[line["work"], line["threads"], "peer" in line] = line
    order = list(targets())
    return sorted(lines.values(), key=lambda line: (order.index(line["work"]) if line["work"] in order else len(order), line["threads"]))


# ---- targets -----------------------------------------------------------------------------------------------------------------------------

def targets():
    """{row: [(key, operator, bound)]}"""
    rows = {}
    for text in (FOLDER / "targets.txt").read_text().splitlines():
        if text and not text.startswith("#"):
            row, *conditions = text.split()
            rows[row] = [re.fullmatch(r"(\w+)([<>]=)(.+)", c).groups() for c in conditions]
    return rows


def bound(text, key, line, lines):
    factor, _, other = text.partition("*")
    if not other:
        return float(factor)
    if other in line:
        return float(factor) * line[other]
    rows = [l[key] for l in lines if l["work"] == other and l["threads"] == line["threads"] and key in l and "peer" not in l]
    return float(factor) * rows[0] if rows else None


def allowed(line, wanted, conditions):
    """What is left of a wanted lead over the best peer when ours runs at its share of the copy."""
    share = [float(b) for key, _, b in conditions if key == "roofline"]
    if not share:
        return wanted
    return max(1, min(wanted, line["peer_ms"][line["best_peer"]] * share[0] / line["copy_ms"]))


def check(lines, only):
    """Prints each missed target; 1 if there are any."""
    missed = met = 0
    wanted = {row: c for row, c in targets().items() if not only or row in only.split(",")}
    for row, conditions in wanted.items():
        mine = [line for line in lines if line["work"] == row]
        if not mine:
            print(f"missed  {row:<14} was not measured")
            missed += 1
        for line in mine:
            for key, sign, text in conditions:
                if (key == "peer") != ("peer" in line) or line.get(key) is None:
                    continue  # lines of the comparison are held against `peer` alone, the others against all else
                limit = bound(text, key, line, lines)
                if key == "peer":
                    limit = allowed(line, limit, conditions)
                if limit is None:
                    continue
                if {"<=": operator.le, ">=": operator.ge}[sign](line[key], limit):
                    met += 1
                else:
                    missed += 1
                    print(f"missed  {row:<14} {line['threads']} thread(s)  {key} {line[key]:.4g}, target {sign} {limit:.4g}"
                          + (f" ({line['best_peer']})" if key == "peer" else ""))
    if not any("peer" in line for line in lines):
        print("not measured: the comparison with peers; add --peers")
    print(f"targets: {met} met, {missed} missed")
    return int(missed > 0)


# ---- tables ------------------------------------------------------------------------------------------------------------------------------

def best(line, framework):
    """(way, milliseconds) of a framework's fastest way, or None."""
    ways = [(ms, way) for way, ms in line["peer_ms"].items() if way.startswith(framework)]
    return min(ways)[::-1] if ways else None


def number(x):
    return "" if x is None else f"{x:.4g}" if x < 1000 else f"{x:.0f}"


def table(header, rows):
    return "\n".join(["| " + " | ".join(header) + " |", "|" + "---|" * len(header), *("| " + " | ".join(r) + " |" for r in rows)])


def own_table(lines):
    header = ["row", "threads", "regular ms", "compiled ms", "speed-up", "of the copy", "first call ms", "with cached kernels ms", "peak MB"]
    keys = ["regular_ms", "compiled_ms", "speedup", "roofline", "first_call_ms", "cached_process_first_call_ms", "peak_mb"]
    return table(header, [[l["work"], str(l["threads"]), *(number(l[k]) for k in keys)] for l in lines if "peer" not in l])


def peers_rows(lines):
    for line in lines:
        if "peer" not in line:
            continue
        cells = []
        for framework in PEERS:
            way = best(line, framework)
            cells.append(f"{number(way[1])} {way[0].split('_')[1]}" if way else "")
        yield [line["work"], str(line["threads"]), number(line["sinter_ms"]), *cells, f"{line['peer']:.2f}", number(line["first_call_ms"]),
               number(min(line["peer_first_call_ms"].values(), default=None))]


PEERS_HEADER = ["row", "threads", "Sinter ms", *(f"{name} ms" for name in PEERS.values()), "best peer / Sinter", "first call ms",
                "the peers' at best ms"]


def peers_text(lines):
    rows = [PEERS_HEADER, *peers_rows(lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(PEERS_HEADER))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows) if len(rows) > 1 else ""


def machine():
    info = dict(re.findall(r"^(model name|cpu family|flags)\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M))
    system = re.search(r'PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text())[1]
    cores = pathlib.Path("/proc/cpuinfo").read_text().count("processor\t:")
    vectors = "AVX-512" if "avx512f" in info["flags"] else "AVX2"
    return f"{info['model name']} (family {info['cpu family']}) with {vectors}, {cores} cores, {system}"


def versions(lines):
    newest = [line["versions"] for line in lines if "versions" in line]
    return ", ".join(f"{PEERS[name]} {version}" for name, version in newest[-1].items()) if newest else ""


# ---- the picture -------------------------------------------------------------------------------------------------------------------------

def picture(lines):
    """Bars: each framework's fastest way as a multiple of Sinter's time, with the most threads measured."""
    threads = max(line["threads"] for line in lines if "peer" in line)
    lines = [line for line in lines if "peer" in line and line["threads"] == threads]
    colours, step, most, unit, left = {"torch": "#d9622b", "jax": "#4a7fc1", "mlx": "#8a8f98"}, 12, 12, 40, 120
    height = len(lines) * (3 * step + 10) + 60
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + most * unit + 60}" height="{height}" font-family="sans-serif" '
           'font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="10" y="18" font-size="13">Time of each framework\'s fastest way, eager or compiled, as a multiple of Sinter\'s; {threads} threads'
           '</text>']
    for i, (framework, colour) in enumerate(colours.items()):
        out += [f'<rect x="{left + 90 * i}" y="26" width="10" height="10" fill="{colour}"/>',
                f'<text x="{left + 14 + 90 * i}" y="35">{PEERS[framework]}</text>']
    for i, line in enumerate(lines):
        top = 48 + i * (3 * step + 10)
        out.append(f'<text x="{left - 6}" y="{top + 2 * step}" text-anchor="end">{line["work"]}</text>')
        for k, (framework, colour) in enumerate(colours.items()):
            way = best(line, framework)
            if way:
                times = way[1] / line["sinter_ms"]
                width = min(times, most) * unit
                out += [f'<rect x="{left}" y="{top + k * step}" width="{width:.1f}" height="{step - 2}" fill="{colour}"/>',
                        f'<text x="{left + width + 4:.1f}" y="{top + k * step + 9}">{times:.1f}</text>']
    out += [f'<line x1="{left + unit}" x2="{left + unit}" y1="42" y2="{height - 8}" stroke="black" stroke-dasharray="3 3"/>', "</svg>"]
    return "\n".join(out) + "\n"


def replace(file, name, text):
    """Between the two comments that carry the name."""
    old = file.read_text()
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    head, rest = old.split(begin)
    file.write_text(head + begin + text.strip() + "\n" + end + rest.split(end)[1])


def write(lines):
    when = f"{datetime.date.today()}; {machine()}; medians."
    own = own_table(lines)
    if own.count("\n") > 1:
        replace(PERFORMANCE, "measured", f"{when}\n\n{own}")
    peers = list(peers_rows(lines))
    if peers:
        replace(PERFORMANCE, "peers", f"{when} {versions(lines)}.\n\n{table(PEERS_HEADER, peers)}")
        PICTURE.write_text(picture(lines))
        most = max(int(row[1]) for row in peers)
        short = [[row[0], *row[2:]] for row in peers if int(row[1]) == most]
        header = [PEERS_HEADER[0], *PEERS_HEADER[2:]]
        replace(README, "peers", f"{most} threads; {when} {versions(lines)}.\n\n{table(header, short)}")
