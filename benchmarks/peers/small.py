# SPDX-License-Identifier: Apache-2.0
"""small.py eager|fused|script|compile|jax: the work of benchmarks/small.cpp by a peer, on one thread.

For each line on standard input, "agent sgd|adam" or "serve UNITS", seconds a call on standard
output; nan for what that peer is not asked to do. All but jax are torch: fused has an optimizer of
one kernel, script freezes a trace, and compile is torch.compile.
"""
import os
import random
import sys

kind = sys.argv[1]
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np

from common import answer

ROWS = 20


def observations():
    return np.random.default_rng(0).standard_normal((ROWS, 1, 4), dtype=np.float32)


def requests():
    return np.random.default_rng(0).random((ROWS, 1, 784), dtype=np.float32)


def torch_agent(rule):
    import torch

    torch.set_num_threads(1)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    fused = True if kind == "fused" else None
    optim = (
        torch.optim.SGD(model.parameters(), 0.01, fused=fused)
        if rule == "sgd"
        else torch.optim.Adam(model.parameters(), 0.001, fused=fused)
    )
    seen, k = observations(), 0

    # The forward pass of the action is that of the training step.
    def once():
        nonlocal k
        logits = model(torch.from_numpy(seen[k]))
        k = (k + 1) % ROWS
        p = torch.softmax(logits.detach(), 1)[0, 0].item()
        action = 0 if random.random() < p else 1
        gain = 0.01 if action == 0 else -0.01
        loss = nn.functional.cross_entropy(logits, torch.tensor([action])) * gain
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        return loss.item()

    return once


def torch_serve(units):
    import torch

    torch.set_num_threads(1)
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(784, int(units)), nn.ReLU(), nn.Linear(int(units), 10), nn.Softmax(1)).eval()
    asked, k = requests(), 0
    if kind == "script":
        model = torch.jit.freeze(torch.jit.trace(model, torch.from_numpy(asked[0])))
    elif kind == "compile":
        model = torch.compile(model)

    def once():
        nonlocal k
        with torch.inference_mode():
            said = model(torch.from_numpy(asked[k])).numpy()
        k = (k + 1) % ROWS
        return said

    return once


def jax_weights(jax, *extents):
    keys = jax.random.split(jax.random.key(0), len(extents))
    return [
        a
        for key, (n, m) in zip(keys, zip(extents, extents[1:]))
        for a in (jax.random.normal(key, (n, m)) * 0.1, jax.numpy.zeros(m))
    ]


def jax_agent(rule):
    import jax
    import jax.numpy as jnp

    def logits_of(w, x):
        return jnp.tanh(x @ w[0] + w[1]) @ w[2] + w[3]

    def loss_of(w, x, action, gain):
        return -jax.nn.log_softmax(logits_of(w, x))[0, action] * gain

    def learn(state, x, action, gain):
        w, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(w, x, action, gain)
        if rule == "sgd":
            return loss, ([a - 0.01 * d for a, d in zip(w, g)], m, v, t)
        t = t + 1
        m = [0.9 * a + 0.1 * d for a, d in zip(m, g)]
        v = [0.999 * a + 0.001 * d * d for a, d in zip(v, g)]
        rate = 0.001 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return loss, ([a - rate * b / (jnp.sqrt(c) + 1e-8) for a, b, c in zip(w, m, v)], m, v, t)

    act = jax.jit(lambda w, x: jax.nn.softmax(logits_of(w, x)))
    train = jax.jit(learn, donate_argnums=0)
    w = jax_weights(jax, 4, 32, 2)
    zeros = lambda: [] if rule == "sgd" else [jnp.zeros_like(a) for a in w]
    state = (w, zeros(), zeros(), jnp.float32(0))
    seen, k = observations(), 0

    def once():
        nonlocal state, k
        x = seen[k]
        k = (k + 1) % ROWS
        p = np.asarray(act(state[0], x))[0, 0]
        action = 0 if random.random() < p else 1
        loss, state = train(state, x, action, 0.01 if action == 0 else -0.01)
        return float(loss)

    return once


def jax_serve(units):
    import jax
    import jax.numpy as jnp

    w = jax_weights(jax, 784, int(units), 10)
    f = jax.jit(lambda w, x: jax.nn.softmax(jnp.maximum(x @ w[0] + w[1], 0) @ w[2] + w[3]))
    asked, k = requests(), 0

    def once():
        nonlocal k
        said = np.asarray(f(w, asked[k]))
        k = (k + 1) % ROWS
        return said

    return once


agents = {"eager": torch_agent, "fused": torch_agent, "jax": jax_agent}
servers = {"eager": torch_serve, "script": torch_serve, "compile": torch_serve, "jax": jax_serve}


def work(words):
    known = agents if words[0] == "agent" else servers
    return known[kind](*words[1:]) if kind in known else None


answer(work)
