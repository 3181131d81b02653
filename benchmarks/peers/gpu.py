# SPDX-License-Identifier: Apache-2.0
"""gpu.py torch|compiled|jax [cpu]: the work of benchmarks/gpu.cpp by a peer, on the first GPU.

"compiled" is torch.compile. First a line on standard output: "ready", and who that is, or why there
is nothing to ask. Then for each line on standard input, as `work` below knows them, seconds a call
until the GPU is done; nan for what has failed, which standard error tells. "cpu" is to try this
script without a GPU.
"""
import os
import sys
import traceback

engine = sys.argv[1]
on_cpu = sys.argv[2:] == ["cpu"]
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # other programs use the same GPU


def torch_work():
    import torch

    if not on_cpu and not torch.cuda.is_available():
        raise RuntimeError("torch sees no GPU")
    device = "cpu" if on_cpu else "cuda"
    compiled = engine == "compiled"
    wait = (lambda: None) if on_cpu else torch.cuda.synchronize
    about = f"torch {torch.__version__}" + ("" if on_cpu else f", {torch.cuda.get_device_name()}")

    def randn(*shape):
        return torch.randn(*shape, device=device)

    def waited(f, *args):
        f = torch.compile(f) if compiled else f

        def once():
            f(*args)
            wait()

        return once

    def chain(n):
        def body(x, d):
            return torch.square(torch.relu(x * 1.7 + 0.3) * 0.9 - d)

        return waited(body, randn(n), randn(n))

    def cross_entropy(rows, classes):
        logits = randn(rows, classes).requires_grad_()
        labels = torch.randint(classes, (rows,), device=device)
        loss_of = torch.nn.functional.cross_entropy
        loss_of = torch.compile(loss_of) if compiled else loss_of

        def once():
            logits.grad = None
            loss_of(logits, labels).backward()
            wait()

        return once

    def product(n, kind):
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        return waited(torch.matmul, randn(n, n), randn(n, n))

    def total(n, axis):
        return waited(lambda x: torch.sum(x, axis), randn(n, n))

    def transposed(n):
        return waited(lambda x: x.t().contiguous(), randn(n, n))

    def adagrad(n):
        w, g = randn(n), randn(n)
        if compiled:
            a = torch.full_like(w, 0.1)

            def update(w, a, g):
                a.add_(g * g)
                w.sub_(0.1 * g / torch.sqrt(a))

            return waited(update, w, a, g)
        w.requires_grad_().grad = g
        optim = torch.optim.Adagrad([w], 0.1, initial_accumulator_value=0.1)
        return waited(optim.step)

    def tiny():
        v, w = (torch.full((16,), k, device=device) for k in (0.5, 0.999))
        return waited(thousand, v, w)

    def mlp(size):
        return torch_mlp("sgd", size, device, compiled)

    def feed(n):
        host = torch.randn(n)

        def once():
            host.to(device)
            wait()

        return None if compiled else once

    def fetch(n):
        x = randn(n)
        return None if compiled else lambda: x.cpu()

    return about, locals()


def jax_work():
    import jax
    import jax.numpy as jnp
    import numpy as np

    if not on_cpu and jax.default_backend() != "gpu":
        raise RuntimeError("jax sees no GPU")
    jax.config.update("jax_default_matmul_precision", "highest")  # the default is TF32
    about = f"jax {jax.__version__}, {jax.devices()[0].device_kind}"
    key = jax.random.key(0)

    def randn(*shape):
        return jax.random.normal(key, shape)

    def waited(f, *args):
        f = jax.jit(f)
        return lambda: jax.block_until_ready(f(*args))

    def chain(n):
        def body(x, d):
            return jnp.square(jnp.maximum(x * 1.7 + 0.3, 0) * 0.9 - d)

        return waited(body, randn(n), randn(n))

    def cross_entropy(rows, classes):
        def loss_of(logits, labels):
            picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
            return -jnp.mean(picked)

        labels = jax.random.randint(key, (rows,), 0, classes)
        return waited(jax.value_and_grad(loss_of), randn(rows, classes), labels)

    def product(n, kind):
        precision = "default" if kind == "tf32" else "highest"
        return waited(lambda a, b: jnp.matmul(a, b, precision=precision), randn(n, n), randn(n, n))

    def total(n, axis):
        return waited(lambda x: jnp.sum(x, axis), randn(n, n))

    def transposed(n):
        return waited(jnp.transpose, randn(n, n))

    def adagrad(n):
        def update(w, a, g):
            a = a + g * g
            return w - 0.1 * g / jnp.sqrt(a), a

        step, g = jax.jit(update, donate_argnums=(0, 1)), randn(n)
        state = randn(n), jnp.full(n, 0.1)

        def once():
            nonlocal state
            state = jax.block_until_ready(step(*state, g))

        return once

    def tiny():
        return jax_chain()

    def mlp(size):
        return jax_mlp("sgd", size)

    def feed(n):
        host = np.random.default_rng(0).standard_normal(n, np.float32)
        return lambda: jax.block_until_ready(jax.device_put(host))

    def fetch(n):
        # An array caches its fetched value, so each fetch needs a new one.
        again, x = jax.jit(lambda x: x + 1), randn(n)
        return lambda: np.asarray(again(x))

    return about, locals()


try:
    from common import answer, jax_chain, jax_mlp, thousand, torch_mlp

    about, known = jax_work() if engine == "jax" else torch_work()
except Exception as e:  # any reason why the library cannot be used
    print(str(e).splitlines()[0], flush=True)
    sys.exit()
print("ready", about, flush=True)


def work(words):
    """"chain N", "cross_entropy ROWS CLASSES", "product N float|tf32", "total N AXIS",
    "transposed N", "adagrad N", "tiny", "mlp BATCH", "feed N" and "fetch N", N in floats."""
    try:
        return known[words[0]](*(int(w) if w.isdigit() else w for w in words[1:]))
    except Exception:
        traceback.print_exc()


answer(work)
