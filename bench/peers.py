"""The workloads of rows.cpp and models.cpp in torch, jax or mlx, measured on request: python3 peers.py torch|jax|mlx THREADS.

Requests and answers are those of serve.cpp: `row NAME` makes a workload, calls each way to run it once and answers `WAY=first_call_ms ...`;
`turn WAY MS` calls one for so long, once at least, and answers the milliseconds of each call. Ways are eager ones, what the framework
has as a function of its own, and compiled ones. Workloads are written from primitives once for all frameworks, on top of a class each.
"""
import math
import os
import sys
import time

import numpy as np

MILLION = 1_000_000
SHAPES = {
    "expneg_add": [(10 * MILLION,)] * 2,
    "gelu_erf": [(4, 1000, 4096)],
    "gelu_tanh": [(4, 1000, 4096)],
    "black_scholes": [(4 * MILLION,)] * 3,
    "adam": [(10 * MILLION,)] * 4,
    "bcast_t": [(4096, 4096), (4096,), (4096, 4096)],
    "softmax": [(4096, 4096)],
    "softmax_vocab": [(256, 50257)],
    "layernorm": [(4096, 4096), (4096,), (4096,)],
    "rmsnorm": [(4096, 4096), (4096,)],
    "colsum_var": [(4096, 4096)],
    "chain200": [(MILLION,)],
    "tiny_call": [(16,)],
    "compile_1k": [(1024,)] * 3,
}
CALLS = {"tiny_call": 1000, "decode": 100}  # calls of each measurement
WIDTH, HEADS, FIRST, TOKENS = 512, 8, 4, 100
random = np.random.default_rng(1)


# ---- elementwise functions and rows; m is a framework ------------------------------------------------------------------------------------

def expneg_add(m, x, y): return m.exp(-x) + y
def gelu_erf(m, x): return x * (1 + m.erf(x / math.sqrt(2))) / 2
def gelu_tanh(m, x): return 0.5 * x * (1 + m.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
def bcast_t(m, x, y, z): return (x.T + y[:, None]) * z
def tiny_call(m, x): return m.exp(-x) + x
def rmsnorm(m, x, g): return x * m.rsqrt(m.mean(x * x, -1) + 1e-5) * g


def black_scholes(m, spot, strike, t):
    rate, volatility = 0.03, 0.2
    root = m.sqrt(t)
    d1 = (m.log(spot / strike) + (rate + volatility * volatility / 2) * t) / (volatility * root)
    d2 = d1 - volatility * root
    normal = lambda z: 0.5 * (1 + m.erf(z / math.sqrt(2)))
    return spot * normal(d1) - strike * m.exp(-rate * t) * normal(d2)


def adam(m, p, g, first, second):
    first = 0.9 * first + 0.1 * g
    second = 0.999 * second + 0.001 * g * g
    return p - 1e-3 * first / (m.sqrt(second) + 1e-8), first, second


def softmax(m, x):
    e = m.exp(x - m.max(x, -1))
    return e / m.sum(e, -1)


softmax_vocab = softmax


def layernorm(m, x, g, b):
    d = x - m.mean(x, -1)
    return d * m.rsqrt(m.mean(d * d, -1) + 1e-5) * g + b


def colsum_var(m, x):
    d = x - m.mean(x, 0)
    return m.mean(d * d, 0)


def chain200(m, x):
    for _ in range(100):
        x = m.tanh(x) * 1.01 + 0.1
    return x


def compile_1k(m, x, y, z):
    for _ in range(250):
        x = m.tanh(x * 1.01 + y) - z
    return x


# ---- models: parameters are dictionaries of arrays -------------------------------------------------------------------------------------

def linear(inputs, outputs): return uniform((inputs, outputs), inputs), uniform((outputs,), inputs)
def uniform(shape, n): return ((random.random(shape) * 2 - 1) / math.sqrt(n)).astype(np.float32)


def mlp_parameters(): return {"a": linear(784, 512), "b": linear(512, 512), "c": linear(512, 10)}
def mlp_loss(m, p, x, labels): return m.cross_entropy(m.linear(m.relu(m.linear(m.relu(m.linear(x, p["a"])), p["b"])), p["c"]), labels)


def block_parameters(w=WIDTH):
    norm = lambda: (np.ones(w, np.float32), np.zeros(w, np.float32))
    return {"n1": norm(), "n2": norm(), "qkv": linear(w, 3 * w), "o": linear(w, w), "up": linear(w, 4 * w), "down": linear(4 * w, w)}


def block(m, p, x, attend=None):
    """attend(q, k, v), each (batch, length, heads, features): causal attention unless a cache is behind it."""
    batch, length, width = x.shape
    qkv = m.linear(m.layer_norm(x, p["n1"]), p["qkv"]).reshape(batch, length, 3, HEADS, width // HEADS)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    y = attend(q, k, v) if attend else m.attention(q, k, v, causal=True)
    x = x + m.linear(y.reshape(batch, length, width), p["o"])
    return x + m.linear(m.gelu(m.linear(m.layer_norm(x, p["n2"]), p["up"])), p["down"])


def block_loss(m, p, x, y): return m.mean_of((block(m, p, x) - y) ** 2)


def decode_token(m, layers, x, caches, position):
    """The caches grow by concatenation, or in jax, which compiles for each shape anew, have places from the start."""
    grown = []
    for p, (keys, values) in zip(layers, caches):
        def attend(q, k, v):
            k, v = m.extend(keys, k, position), m.extend(values, v, position)
            grown.append((k, v))
            return m.attention(q, k, v, seen=position + 1)
        x = block(m, p, x, attend)
    return x, grown


def tree_map(f, t):
    if isinstance(t, dict):
        return {k: tree_map(f, v) for k, v in t.items()}
    return type(t)(tree_map(f, v) for v in t) if isinstance(t, (tuple, list)) else f(t)


class Framework:
    """Ways to run a workload: name -> function without arguments that returns when all is computed."""
    own = {}  # the framework's own function for a workload

    def ways(self, row):
        if row in SHAPES:
            return self.array_ways(row)
        x = uniform((1, 1, WIDTH) if row == "decode" else (8, 256, WIDTH), 1)
        if row == "mlp_train":
            return self.training(mlp_loss, mlp_parameters(), uniform((256, 784), 1), random.integers(0, 10, 256))
        if row == "block_fwd":
            p, x = tree_map(self.parameter, block_parameters()), self.array(x)
            return self.runs(lambda x: block(self, p, x), (x,))
        if row == "block_train":
            return self.training(block_loss, block_parameters(), x, x[::-1].copy())
        return self.decoding(x) if row == "decode" else {}

    def array_ways(self, row):
        args = [self.array((random.random(s) + 0.5).astype(np.float32)) for s in SHAPES[row]]
        ways = self.runs(lambda *a: globals()[row](self, *a), args)
        if row in self.own:
            ways[f"{self.name}_own"] = lambda: self.wait(self.own[row](*args))
        return ways

    def runs(self, f, args):
        compiled = self.compile(f)
        return {f"{self.name}_eager": lambda: self.wait(f(*args)), f"{self.name}_compiled": lambda: self.wait(compiled(*args))}

    def decoding(self, x):
        layers = [tree_map(self.parameter, block_parameters()) for _ in range(6)]
        places = FIRST if self.grows else FIRST + TOKENS
        begin = [tuple(self.array(uniform((1, places, HEADS, WIDTH // HEADS), 64)) for _ in "kv") for _ in layers]
        x = self.array(x)
        eager = lambda *a: decode_token(self, layers, *a)
        functions = {"eager": eager, "compiled": self.compile(eager, dynamic=True)}

        def way(f):
            text = [x, begin, FIRST]
            def token():
                if text[2] == FIRST + TOKENS:
                    text[:] = x, begin, FIRST
                text[:2] = f(*text[:2], self.position(text[2]))
                text[2] += 1
                self.wait(text[:2])
            return token
        return {f"{self.name}_{name}": way(functions[name]) for name in self.decode_ways}


class Torch(Framework):
    name, grows, decode_ways = "torch", True, ("eager", "compiled")

    def __init__(self, threads):
        import torch
        import torch.nn.functional as F
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)  # but in training
        torch._dynamo.config.recompile_limit = 64
        self.torch, self.F = torch, F
        self.exp, self.log, self.tanh, self.erf, self.sqrt, self.rsqrt = torch.exp, torch.log, torch.tanh, torch.erf, torch.sqrt, torch.rsqrt
        self.max, self.sum, self.mean = (lambda x, a, f=f: f(x, a, keepdim=True) for f in (torch.amax, torch.sum, torch.mean))
        self.array, self.mean_of, self.relu, self.gelu, self.cross_entropy = torch.tensor, torch.mean, torch.relu, F.gelu, F.cross_entropy
        rows = lambda x: torch.softmax(x, -1)
        self.own = {"gelu_erf": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "softmax": rows, "softmax_vocab": rows,
                    "layernorm": lambda x, g, b: F.layer_norm(x, (4096,), g, b), "rmsnorm": lambda x, g: F.rms_norm(x, (4096,), g, 1e-5),
                    "colsum_var": lambda x: torch.var(x, 0, correction=0)}

    def parameter(self, a): return self.torch.tensor(a.T.copy())  # a weight is (outputs, inputs), as in torch.nn.Linear
    def linear(self, x, p): return self.F.linear(x, *p)
    def layer_norm(self, x, p): return self.F.layer_norm(x, (WIDTH,), *p)
    def position(self, n): return n
    def extend(self, old, new, _): return self.torch.cat([old, new], 1)
    def wait(self, _): pass

    def attention(self, q, k, v, causal=False, seen=None):
        q, k, v = (a.transpose(1, 2) for a in (q, k, v))
        return self.F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    def compile(self, f, dynamic=None):
        self.torch._dynamo.reset()
        return self.torch.compile(f, dynamic=dynamic)

    def array_ways(self, row):
        if row != "adam":
            return super().array_ways(row)
        p, g, first, second = (self.array((random.random(s) + 0.5).astype(np.float32)) for s in SHAPES[row])

        def step():  # in place
            first.mul_(0.9).add_(g, alpha=0.1)
            second.mul_(0.999).addcmul_(g, g, value=0.001)
            p.addcdiv_(first, second.sqrt().add_(1e-8), value=-1e-3)
        own = self.torch.nn.Parameter(p.clone())
        own.grad = g
        return {"torch_eager": step, "torch_compiled": self.compile(step), "torch_own": self.torch.optim.Adam([own], fused=True).step}

    def training(self, loss, parameters, *args):
        def way(compiled):
            p = tree_map(lambda a: self.parameter(a).requires_grad_(), parameters)
            leaves = []
            tree_map(leaves.append, p)
            optimizer = self.torch.optim.Adam(leaves, lr=1e-3, fused=True)
            f = lambda *a: loss(self, p, *a)
            f = self.compile(f) if compiled else f
            arrays = [self.array(a) for a in args]

            def step():
                optimizer.zero_grad(set_to_none=True)
                with self.torch.enable_grad():
                    f(*arrays).backward()
                optimizer.step()
            return step
        return {"torch_eager": way(False), "torch_compiled": way(True)}


class Jax(Framework):
    name, grows, decode_ways = "jax", False, ("compiled",)

    def __init__(self, _):  # as many threads as the process may use cores
        import jax
        import jax.numpy as jnp
        self.jax, self.jnp = jax, jnp
        self.exp, self.log, self.tanh, self.erf, self.sqrt, self.rsqrt = jnp.exp, jnp.log, jnp.tanh, jax.lax.erf, jnp.sqrt, jax.lax.rsqrt
        self.max, self.sum, self.mean = (lambda x, a, f=f: f(x, axis=a, keepdims=True) for f in (jnp.max, jnp.sum, jnp.mean))
        self.array = self.parameter = jnp.asarray
        self.mean_of, self.relu, self.position, self.wait = jnp.mean, jax.nn.relu, jnp.int32, jax.block_until_ready
        self.own = {"colsum_var": jax.jit(lambda x: jnp.var(x, 0))}

    def linear(self, x, p): return x @ p[0] + p[1]
    def gelu(self, x): return self.jax.nn.gelu(x, approximate=False)
    def layer_norm(self, x, p): return layernorm(self, x, *p)
    def compile(self, f, dynamic=False): return self.jax.jit(f)
    def extend(self, old, new, at): return self.jax.lax.dynamic_update_slice_in_dim(old, new, at, 1)

    def attention(self, q, k, v, causal=False, seen=None):
        lengths = None if seen is None else self.jnp.reshape(seen, (1,))
        return self.jax.nn.dot_product_attention(q, k, v, is_causal=causal, key_value_seq_lengths=lengths)

    def cross_entropy(self, x, labels):
        return -self.jnp.mean(self.jnp.take_along_axis(self.jax.nn.log_softmax(x), labels[:, None], 1))

    def array_ways(self, row):
        if row != "adam":
            return super().array_ways(row)
        state = [self.array((random.random(s) + 0.5).astype(np.float32)) for s in SHAPES[row]]
        f = self.jax.jit(lambda p, first, second, g: adam(self, p, g, first, second), donate_argnums=(0, 1, 2))  # in place

        def step():
            state[0], state[2], state[3] = self.wait(f(state[0], state[2], state[3], state[1]))
        return {"jax_compiled": step}

    def training(self, loss, parameters, *args):
        def update(p, first, second, t, *a):
            g = self.jax.grad(lambda p: loss(self, p, *a))(p)
            first = self.jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, g)
            second = self.jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, g)
            new = lambda p, m, v: p - 1e-3 * (m / (1 - 0.9 ** t)) / (self.jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8)
            return self.jax.tree.map(new, p, first, second), first, second, t + 1
        p = tree_map(self.parameter, parameters)
        zeros = lambda: self.jax.tree.map(self.jnp.zeros_like, p)
        state, arrays = [(p, zeros(), zeros(), self.jnp.float32(1))], [self.array(a) for a in args]
        f = self.jax.jit(update, donate_argnums=(0, 1, 2, 3))

        def step():
            state[0] = self.wait(f(*state[0], *arrays))
        return {"jax_compiled": step}


class Mlx(Framework):
    name, grows, decode_ways = "mlx", True, ("eager", "compiled")

    def __init__(self, _):
        import mlx.core as mx
        import mlx.nn as nn
        import mlx.optimizers as optim
        mx.set_default_device(mx.cpu)
        self.mx, self.optim, self.wait = mx, optim, mx.eval
        self.exp, self.log, self.tanh, self.erf, self.sqrt, self.rsqrt = mx.exp, mx.log, mx.tanh, mx.erf, mx.sqrt, mx.rsqrt
        self.max, self.sum, self.mean = (lambda x, a, f=f: f(x, axis=a, keepdims=True) for f in (mx.max, mx.sum, mx.mean))
        self.array, self.mean_of, self.relu, self.gelu = mx.array, mx.mean, nn.relu, nn.gelu
        rows = lambda x: mx.softmax(x, -1)
        self.own = {"gelu_erf": nn.gelu, "gelu_tanh": nn.gelu_approx, "softmax": rows, "softmax_vocab": rows,
                    "layernorm": lambda x, g, b: mx.fast.layer_norm(x, g, b, 1e-5), "rmsnorm": lambda x, g: mx.fast.rms_norm(x, g, 1e-5),
                    "colsum_var": lambda x: mx.var(x, 0)}

    def parameter(self, a): return self.mx.array(a.T.copy())
    def linear(self, x, p): return self.mx.addmm(p[1], x, p[0].T)
    def layer_norm(self, x, p): return self.mx.fast.layer_norm(x, *p, 1e-5)
    def cross_entropy(self, x, labels):
        return self.mx.mean(self.mx.logsumexp(x, -1) - self.mx.take_along_axis(x, labels[:, None], 1)[:, 0])
    def position(self, n): return n
    def extend(self, old, new, _): return self.mx.concatenate([old, new], 1)
    def compile(self, f, dynamic=False): return self.mx.compile(f)

    def attention(self, q, k, v, causal=False, seen=None):
        q, k, v = (a.transpose(0, 2, 1, 3) for a in (q, k, v))
        mask = "causal" if causal else None
        return self.mx.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask=mask).transpose(0, 2, 1, 3)

    def training(self, loss, parameters, *args):
        from mlx.utils import tree_flatten, tree_unflatten
        arrays = [self.array(a) for a in args]
        gradient = self.mx.value_and_grad(lambda p, *a: loss(self, p, *a))

        def way(compiled):
            optimizer = self.optim.Adam(1e-3, bias_correction=True)
            state = {"p": dict(tree_flatten(tree_map(self.parameter, parameters)))}
            optimizer.init(state["p"])

            def update(*a):
                value, g = gradient(tree_unflatten(list(state["p"].items())), *a)
                state["p"] = optimizer.apply_gradients(dict(tree_flatten(g)), state["p"])
                return value
            both = [state, optimizer.state]
            f = self.mx.compile(update, inputs=both, outputs=both) if compiled else update
            return lambda: self.wait(f(*arrays), state, optimizer.state)
        return {"mlx_eager": way(False), "mlx_compiled": way(True)}


def milliseconds(f, n=1):
    start = time.perf_counter()
    for _ in range(n):
        f()
    return (time.perf_counter() - start) * 1e3 / n


def serve(framework, answers):
    ways, calls = {}, 1
    for line in sys.stdin:
        command, *arguments = line.split()
        answer = []
        if command == "row":
            ways, calls = framework.ways(arguments[0]), CALLS.get(arguments[0], 1)
            for way in list(ways):
                try:
                    answer.append(f"{way}={milliseconds(ways[way]):.3f}")
                except Exception as error:  # what a framework cannot do is left out
                    print(f"{way}, {arguments[0]}: {str(error)[:300]}", file=sys.stderr)
        else:
            end = time.perf_counter() + float(arguments[1]) / 1e3
            while not answer or time.perf_counter() < end:
                answer.append(f"{milliseconds(ways[arguments[0]], calls):.6f}")
        print(*answer, file=answers, flush=True)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what frameworks and the compilers they start print is no answer
    framework = {"torch": Torch, "jax": Jax, "mlx": Mlx}[sys.argv[1]](int(sys.argv[2]))
    serve(framework, answers)


main()
