# SPDX-License-Identifier: Apache-2.0
"""kernels.py eager|compile|jax THREADS: the work of benchmarks/kernels.cpp by torch or JAX.

For each line on standard input, the name of a row, seconds a call on standard output; nan for what
that peer is not asked to do.
"""
import os
import re
import sys

kind, threads = sys.argv[1], int(sys.argv[2])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])

import numpy as np

from common import answer

rng = np.random.default_rng(0)


def floats(*shape, dtype=np.float32):
    return np.asarray(rng.random(shape) * 4 - 2, dtype)


def positive(*shape):
    return np.abs(floats(*shape)) + np.float32(0.01)


def extents(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def torch_work():
    import torch
    import torch.nn.functional as f

    torch.set_num_threads(threads)
    if kind == "compile" and os.environ.get("ATEN_CPU_CAPABILITY") == "avx2":
        import torch._inductor.config

        torch._inductor.config.cpp.simdlen = 256
    wrap = torch.compile if kind == "compile" else lambda g: g
    # What torch.compile would only call, eager torch has called.
    plain = lambda g: g if kind == "eager" else None

    def of(g, *arrays):
        if g is None:
            return None
        tensors = [torch.from_numpy(a) for a in arrays]

        def once():
            with torch.inference_mode():
                return g(*tensors)

        return once

    def cross_entropy():
        logits = torch.from_numpy(floats(100, 10)).requires_grad_()
        labels = torch.arange(100) % 10
        g = wrap(lambda x: f.cross_entropy(x, labels))

        def once():
            logits.grad = None
            loss = g(logits)
            loss.backward()
            return loss

        return once

    def layer_norm(x, gain, shift):
        return f.layer_norm(x, (1024,), gain, shift)

    def pool(name):
        n, h, w, c = extents(name)
        g = f.max_pool2d if name.startswith("max") else f.avg_pool2d
        return of(plain(lambda x: g(x, 2)), floats(n, c, h, w))

    def gradient(name):
        k, step = extents(name)[0], 2 if "stride 2" in name else 1
        last = torch.channels_last
        x = torch.from_numpy(floats(32, 64, 28, 28)).to(memory_format=last)
        w = torch.from_numpy(floats(64, 64, k, k)).to(memory_format=last)
        g = torch.from_numpy(floats(32, 64, 28 // step, 28 // step)).to(memory_format=last)
        mask = [name.startswith("input"), name.startswith("filter"), False]
        pad = [(k - step + 1) // 2] * 2

        def once():
            return torch.ops.aten.convolution_backward(
                g, x, w, None, [step] * 2, pad, [1, 1], False, [0, 0], 1, mask)

        return once if kind == "eager" else None

    def scores(q, k):
        return (q.unsqueeze(3) * k.unsqueeze(2)).sum(4)

    return {
        "x + y of scalars": lambda s: of(wrap(lambda a, b: a + b), floats(), floats()),
        "x + y of": lambda s: of(wrap(lambda a, b: a + b), floats(*extents(s)), floats(*extents(s))),
        "sum of": lambda s: of(wrap(lambda x: x.sum()), floats(*extents(s))),
        "mean and variance": lambda s: of(
            wrap(lambda x: torch.var_mean(x, correction=0)), floats(*extents(s))),
        "sum along rows": lambda s: of(wrap(lambda x: x.sum(1)), floats(*extents(s))),
        "max along rows": lambda s: of(wrap(lambda x: x.amax(1)), floats(*extents(s))),
        "argmax along rows": lambda s: of(wrap(lambda x: x.argmax(1)), floats(*extents(s))),
        "softmax along rows": lambda s: of(wrap(lambda x: x.softmax(1)), floats(*extents(s))),
        "cross entropy": lambda s: cross_entropy(),
        "normal": lambda s: of(plain(lambda: torch.randn(*extents(s)))),
        "uniform": lambda s: of(plain(lambda: torch.rand(*extents(s)))),
        "matmul": lambda s: of(plain(torch.matmul), *operands(s)),
        "products": lambda s: of(
            plain((lambda a, b: a @ b.mT) if s.endswith("transposed") else torch.matmul),
            *batches(s)),
        "layer norm": lambda s: of(
            wrap(layer_norm), floats(*extents(s)), floats(1024), floats(1024)),
        "relu(x + row)": lambda s: of(
            wrap(lambda x, r: torch.relu(x + r)), floats(*extents(s)), floats(1024)),
        "x * column": lambda s: of(wrap(lambda x, c: x * c), floats(*extents(s)), floats(4096, 1)),
        "x / the sum of its row": lambda s: of(
            wrap(lambda x: x / x.sum(1, keepdim=True)), floats(*extents(s))),
        "floats to int32": lambda s: of(wrap(lambda x: x.to(torch.int32)), floats(10_000_000)),
        "floats to doubles": lambda s: of(wrap(lambda x: x.to(torch.float64)), floats(10_000_000)),
        "bytes to floats": lambda s: of(
            wrap(lambda x: x.to(torch.float32)), np.ones(10_000_000, np.uint8)),
        "along axis 0": lambda s: of(
            wrap(lambda a, b: torch.cat([a, b], 0)), floats(2048, 2048), floats(2048, 2048)),
        "along axis 1": lambda s: of(
            wrap(lambda a, b: torch.cat([a, b], 1)), floats(2048, 2048), floats(2048, 2048)),
        "a column": lambda s: of(
            wrap(lambda x: x[:, 3:4].clone(memory_format=torch.contiguous_format)),
            floats(*extents(s))),
        "pow(x, 2)": lambda s: of(wrap(lambda x: x**2), positive(1_000_000)),
        "pow(x, 2.5)": lambda s: of(wrap(lambda x: x**2.5), positive(1_000_000)),
        "pow(x, -1)": lambda s: of(wrap(lambda x: x**-1), positive(1_000_000)),
        "sin": lambda s: of(wrap(torch.sin), floats(1_000_000, dtype=np.float64)),
        "cos": lambda s: of(wrap(torch.cos), floats(1_000_000, dtype=np.float64)),
        "sigmoid": lambda s: of(wrap(torch.sigmoid), floats(1_000_000)),
        "tanh": lambda s: of(wrap(torch.tanh), floats(1_000_000)),
        "_pool": pool,
        "gradient": gradient,
        "scores": lambda s: of(wrap(scores), floats(4, 4, 128, 32), floats(4, 4, 128, 32)),
    }


def operands(name):
    m, k, n = extents(name)
    dtype = np.float64 if "doubles" in name else np.float32
    return floats(m, k, dtype=dtype), floats(k, n, dtype=dtype)


def batches(name):
    count, m, k, n = extents(name)
    b = (n, k) if name.endswith("transposed") else (k, n)
    return floats(count, m, k), floats(count, *b)


def jax_work():
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def of(g, *arrays):
        compiled, inputs = jax.jit(g), [jnp.asarray(a) for a in arrays]
        return lambda: jax.block_until_ready(compiled(*inputs))

    def random(draw, count):
        # The key is data, so that numbers are drawn in each call.
        compiled, key = jax.jit(lambda k: draw(k, (count,), dtype=jnp.float32)), jax.random.key(1)
        return lambda: jax.block_until_ready(compiled(key))

    def cross_entropy():
        labels = jnp.arange(100) % 10
        loss = lambda x: -jnp.mean(
            jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1))
        return of(jax.value_and_grad(loss), floats(100, 10))

    def layer_norm(x, gain, shift):
        d = x - x.mean(1, keepdims=True)
        return d * jax.lax.rsqrt((d * d).mean(1, keepdims=True) + 1e-5) * gain + shift

    def pool(name):
        n, h, w, c = extents(name)
        window = (1, 2, 2, 1)
        if name.startswith("max"):
            g = lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
        else:
            g = lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, window, window, "VALID") / 4
        return of(g, floats(n, h, w, c))

    def gradient(name):
        k, step = extents(name)[0], 2 if "stride 2" in name else 1
        conv = lambda x, w: jax.lax.conv_general_dilated(
            x, w, (step, step), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x, w = floats(32, 28, 28, 64), floats(k, k, 64, 64)
        g = floats(32, 28 // step, 28 // step, 64)
        if name.startswith("input"):
            return of(lambda x, w, g: jax.vjp(lambda x: conv(x, w), x)[1](g), x, w, g)
        return of(lambda x, w, g: jax.vjp(lambda w: conv(x, w), w)[1](g), x, w, g)

    one = lambda g: lambda s: of(g, floats(*extents(s)))
    return {
        "x + y of scalars": lambda s: of(lambda a, b: a + b, floats(), floats()),
        "x + y of": lambda s: of(lambda a, b: a + b, floats(*extents(s)), floats(*extents(s))),
        "sum of": one(jnp.sum),
        "mean and variance": one(lambda x: (x.mean(), x.var())),
        "sum along rows": one(lambda x: x.sum(1)),
        "max along rows": one(lambda x: x.max(1)),
        "argmax along rows": one(lambda x: x.argmax(1)),
        "softmax along rows": one(jax.nn.softmax),
        "cross entropy": lambda s: cross_entropy(),
        "normal": lambda s: random(jax.random.normal, *extents(s)),
        "uniform": lambda s: random(jax.random.uniform, *extents(s)),
        "matmul": lambda s: of(jnp.matmul, *operands(s)),
        "products": lambda s: of(
            (lambda a, b: a @ b.mT) if s.endswith("transposed") else jnp.matmul,
            *batches(s)),
        "layer norm": lambda s: of(layer_norm, floats(*extents(s)), floats(1024), floats(1024)),
        "relu(x + row)": lambda s: of(
            lambda x, r: jnp.maximum(x + r, 0), floats(*extents(s)), floats(1024)),
        "x * column": lambda s: of(lambda x, c: x * c, floats(*extents(s)), floats(4096, 1)),
        "x / the sum of its row": one(lambda x: x / x.sum(1, keepdims=True)),
        "floats to int32": lambda s: of(lambda x: x.astype(jnp.int32), floats(10_000_000)),
        "floats to doubles": lambda s: of(lambda x: x.astype(jnp.float64), floats(10_000_000)),
        "bytes to floats": lambda s: of(
            lambda x: x.astype(jnp.float32), np.ones(10_000_000, np.uint8)),
        "along axis 0": lambda s: of(
            lambda a, b: jnp.concatenate([a, b], 0), floats(2048, 2048), floats(2048, 2048)),
        "along axis 1": lambda s: of(
            lambda a, b: jnp.concatenate([a, b], 1), floats(2048, 2048), floats(2048, 2048)),
        "a column": one(lambda x: x[:, 3:4]),
        "pow(x, 2)": lambda s: of(lambda x: x**2, positive(1_000_000)),
        "pow(x, 2.5)": lambda s: of(lambda x: x**2.5, positive(1_000_000)),
        "pow(x, -1)": lambda s: of(lambda x: x**-1, positive(1_000_000)),
        "sin": lambda s: of(jnp.sin, floats(1_000_000, dtype=np.float64)),
        "cos": lambda s: of(jnp.cos, floats(1_000_000, dtype=np.float64)),
        "sigmoid": lambda s: of(jax.nn.sigmoid, floats(1_000_000)),
        "tanh": lambda s: of(jnp.tanh, floats(1_000_000)),
        "_pool": pool,
        "gradient": gradient,
        "scores": lambda s: of(
            lambda q, k: (q[:, :, :, None] * k[:, :, None]).sum(4),
            floats(4, 4, 128, 32),
            floats(4, 4, 128, 32)),
    }


all_work = jax_work() if kind == "jax" else torch_work()


def work(words):
    name = " ".join(words)
    known = max((part for part in all_work if part in name), key=len, default=None)
    return all_work[known](name) if known else None


answer(work)
