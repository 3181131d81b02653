# SPDX-License-Identifier: Apache-2.0
"""Shared code of the peers' scripts: answering requests, and training the perceptron of mlp.hpp."""
import sys
import time

import numpy as np

BATCHES = 20


def seconds(work):
    calls = 1
    while True:
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        spent = time.perf_counter() - begin
        if spent > 0.02:
            return spent / calls
        calls *= 2


def answer(make):
    """For each line on standard input, prints seconds per call of make(words); nan for None.

    Equal consecutive lines use the same result of make(words)."""
    last, work = None, None
    for line in sys.stdin:
        if line != last:
            work = None  # frees its memory first
            last, work = line, make(line.split())
            if work:
                seconds(work)
        print(seconds(work) if work else "nan", flush=True)


def batches(size):
    rng = np.random.default_rng(0)
    return [
        (rng.random((size, 784), dtype=np.float32), rng.integers(0, 10, size).astype(np.int32))
        for _ in range(BATCHES)
    ]


def weights():
    rng = np.random.default_rng(1)
    return [
        (rng.standard_normal((784, 500)) * 0.05).astype(np.float32),
        np.zeros(500, np.float32),
        (rng.standard_normal((500, 10)) * 0.05).astype(np.float32),
        np.zeros(10, np.float32),
    ]


def thousand(v, w):
    """1,000 operations."""
    for _ in range(500):
        v = v * w
        v = v + 1e-3
    return v


def jax_chain():
    """`thousand` on 16 floats."""
    import jax
    import jax.numpy as jnp

    f, v, w = jax.jit(thousand), jnp.full(16, 0.5), jnp.full(16, 0.999)
    return lambda: f(v, w).block_until_ready()


def jax_mlp(rule, size):
    import jax
    import jax.numpy as jnp

    def loss_of(p, x, t):
        logits = jnp.maximum(x @ p[0] + p[1], 0) @ p[2] + p[3]
        rows = jnp.take_along_axis(jax.nn.log_softmax(logits), t[:, None], 1)
        return -jnp.mean(rows)

    def sgd(state, x, t):
        loss, g = jax.value_and_grad(loss_of)(state, x, t)
        return jax.tree.map(lambda p, d: p - 0.1 * d, state, g), loss

    def adagrad(state, x, t):
        p, a = state
        loss, g = jax.value_and_grad(loss_of)(p, x, t)
        a = jax.tree.map(lambda s, d: s + d * d, a, g)
        return (jax.tree.map(lambda p, s, d: p - 0.1 * d / jnp.sqrt(s), p, a, g), a), loss

    step = jax.jit(sgd if rule == "sgd" else adagrad, donate_argnums=0)
    p = [jnp.asarray(w) for w in weights()]
    state = p if rule == "sgd" else (p, [jnp.full_like(w, 0.1) for w in p])
    data, k = batches(size), 0

    def once():
        nonlocal state, k
        state, loss = step(state, *data[k % BATCHES])
        k += 1
        return float(loss)

    return once


def torch_mlp(rule, size, device="cpu", compiled=False):
    import torch

    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 10)).to(device)
    optim = (
        torch.optim.SGD(model.parameters(), 0.1)
        if rule == "sgd"
        else torch.optim.Adagrad(model.parameters(), 0.1, initial_accumulator_value=0.1)
    )
    data = [(torch.from_numpy(x), torch.from_numpy(t).long()) for x, t in batches(size)]
    if device != "cpu":
        data = [(x.pin_memory(), t.pin_memory()) for x, t in data]
    k = 0

    def loss_of(x, t):
        return nn.functional.cross_entropy(model(x), t)

    if compiled:
        loss_of = torch.compile(loss_of)

    def once():
        nonlocal k
        x, t = (a.to(device, non_blocking=True) for a in data[k % BATCHES])
        k += 1
        optim.zero_grad(set_to_none=True)
        loss = loss_of(x, t)
        loss.backward()
        optim.step()
        return loss.item()

    return once
