#!/usr/bin/env python3
"""math_tables.py: writes src/ops/math/tables.h, the tables of log, tanh and erf in float32. How they are used is said there.

A piece of a function f is f(c) + h P(h), h = |x| - c, with the polynomial P of least relative error of f over the interval. Its
coefficients are found by Lawson's method (least squares, with weights raised where the error is large) and rounded to float32 one after
the other, the rest fitted again after each. The centre c is the number near the middle for which f(c) is next to a float32, so that the
first term has no error (Gal 1986, "Computing elementary functions: a new approach for achieving high accuracy and good performance").
"""
import math
import pathlib
import struct
import subprocess

TARGET = pathlib.Path(__file__).resolve().parent.parent / "src/ops/math/tables.h"
POINTS = 48  # of an interval, spaced as Chebyshev's


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def singles_near(x, count):
    """float32 numbers around x, the nearest first."""
    word = struct.unpack("i", struct.pack("f", x))[0]
    return [struct.unpack("f", struct.pack("i", word + (-i // 2 if i % 2 else i // 2)))[0] for i in range(count)]


def solve(a, b):
    """Gauss's elimination."""
    n = len(b)
    rows = [[*a[i], b[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            q = rows[r][i] / rows[i][i]
            rows[r] = [x - q * y for x, y in zip(rows[r], rows[i])]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][k] * x[k] for k in range(i + 1, n))) / rows[i][i]
    return x


def fit(target, basis, weights, turns=24):
    """Coefficients of `basis` (values at each point) with the least maximum of weight * |sum - target|."""
    n = len(basis[0])
    shares = [1.0] * len(target)
    best = math.inf, []
    for _ in range(turns):
        s = [share * w * w for share, w in zip(shares, weights)]
        a = [[sum(x * v[i] * v[k] for x, v in zip(s, basis)) for k in range(n)] for i in range(n)]
        b = [sum(x * v[i] * t for x, v, t in zip(s, basis, target)) for i in range(n)]
        c = solve(a, b)
        errors = [w * abs(sum(x * y for x, y in zip(c, v)) - t) for w, v, t in zip(weights, basis, target)]
        best = min(best, (max(errors), c))
        shares = [share * error for share, error in zip(shares, errors)]
        total = sum(shares)
        if total == 0:
            break
        shares = [share / total for share in shares]
    return best[1]


def rounded_fit(target, points, lowest, count, weights, given=()):
    """float32 c so that the sum of c[i] h^(lowest + i) is near target at the points; the first ones may be given."""
    size = max(abs(h) for h in points)
    c = list(given)
    while len(c) < count:
        first = lowest + len(c)
        rest = [t - sum(x * h ** (lowest + i) for i, x in enumerate(c)) for h, t in zip(points, target)]
        basis = [[h**first * (h / size) ** k for k in range(count - len(c))] for h in points]
        c.append(single(fit(rest, basis, weights)[0]))
    return c


def nodes(low, high):
    return [(low + high) / 2 - (high - low) / 2 * math.cos(math.pi * (i + 0.5) / POINTS) for i in range(POINTS)]


def exact_near(f, x, condition=lambda c: True):
    """Of the float32 numbers c near x that satisfy a condition, that for which f(c) is closest to a float32."""
    return min(filter(condition, singles_near(x, 4000)), key=lambda c: abs(f(c) - single(f(c))))


def piece(f, low, high, count, first):
    """[c, f(c), p0, p1, ...] on [low, high]. In the first one f = |x| + |x| P, and p0 may be given; f(c) > h tells the others from it."""
    c = exact_near(f, (low + high) / 2, lambda c: high - c < f(c)) if low > 0 else 0.0
    start = single(f(c))
    points = [a - c for a in nodes(low, high)]
    values = [f(c + h) for h in points]
    target = [v - start - (h if low == 0 else 0) for v, h in zip(values, points)]
    return [c, start, *rounded_fit(target, points, 1, count, [1 / v for v in values], first if low == 0 else ())]


def pieces(f, origin, shift, limit, count, first=()):
    """The 16 pieces by the index (bits of |x| + origin) >> shift; those beyond the limit are 0."""
    table = [[0.0] * (count + 2) for _ in range(16)]
    for word in range(struct.unpack("I", struct.pack("f", origin))[0], 0x7F800000, 1 << shift):
        low, high = (struct.unpack("f", struct.pack("I", w))[0] - origin for w in (word, word + (1 << shift)))
        if low >= limit:
            return table
        table[word >> shift & 15] = piece(f, low, high, count, first)


def log_tables():
    inverses = []
    for i in range(16):
        low, high = ((1 + k / 16) / (2 if i >= 8 else 1) for k in (i, i + 1))
        inverses.append(1.0 if i in (0, 15) else exact_near(math.log, 2 / (low + high)))
    points = nodes(-1 / 32, 1 / 16)
    values = [math.log1p(r) for r in points]
    q = rounded_fit([v - r for v, r in zip(values, points)], points, 2, 4, [1 / abs(v) for v in values])
    return inverses, [0.0 - single(math.log(c)) for c in inverses], q


def table(numbers):
    return "{" + ", ".join(f"{x:.9g}" for x in numbers) + "}"


def text():
    yield """// tables: of log, tanh and erf in float32. Written by tools/math_tables.py, which says how they are found. Layer: ops.
#pragma once
#include "ops/math/pieces.h"

namespace sinter::ops::math {

// log, by the interval of m in [3/4, 3/2) that (bits of m) >> 19 names: a number c near 1 / m, and -log(c). Next to 1 they are 1 and 0.
"""
    inverses, logs, q = log_tables()
    yield f"inline constexpr Table kLogInverse = {table(inverses)};\n"
    yield f"inline constexpr Table kLogStart = {table(logs)};\n"
    yield f"""// log(1 + r) = r + r^2 Q(r) on [-1/32, 1/16]
inline constexpr float kLogQ[] = {table(q)};
"""
    for name, function, origin, shift, limit, count, first in (
        ("Tanh", math.tanh, 1, 21, 9.2, 6, [0.0]),
        ("Erf", math.erf, 1.5, 20, 3.95, 5, []),
    ):
        rows = list(zip(*pieces(function, origin, shift, limit, count, first)))
        yield f"""
inline constexpr Table k{name}Coefficients[] = {{{", ".join(table(r) for r in rows[2:])}}};
inline constexpr Pieces k{name} = {{{origin}, {limit}, {shift}, {table(rows[0])}, {table(rows[1])}, k{name}Coefficients}};
"""
    yield "\n}  // namespace sinter::ops::math\n"


def main():
    TARGET.write_text("".join(text()))
    subprocess.run(["clang-format-19", "-i", TARGET], check=True)


if __name__ == "__main__":
    main()
