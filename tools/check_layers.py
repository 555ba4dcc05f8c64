#!/usr/bin/env python3
"""check_layers.py [SRC]: fails if a file includes a header from a layer above its own. The list below is the architecture."""
import pathlib
import re
import sys

LAYERS = ["base", "runtime", "ops", "graph", "transforms", "passes", "kernel", "backends", "engine", "api", "nn"]
FORBIDDEN = {("kernel", "passes"), ("backends", "graph"), ("backends", "passes"), ("runtime", "ops")}  # lower or not, not yours


def violations(root):
    for file in sorted(root.rglob("*")):
        if file.suffix not in (".h", ".cpp", ".def"):
            continue
        layer = file.relative_to(root).parts[0]
        if layer not in LAYERS:
            yield f"{file}: {layer} is not a layer; add it to tools/check_layers.py or move the file"
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include "(\w+)/', line)
            other = found and found[1]
            if other in LAYERS and other != layer and (LAYERS.index(other) > LAYERS.index(layer) or (layer, other) in FORBIDDEN):
                yield f"{file}:{number}: {layer} may not include {other}"


def main():
    found = list(violations(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src")))
    print("\n".join(found) or "layers: OK")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
