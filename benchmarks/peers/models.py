# SPDX-License-Identifier: Apache-2.0
"""models.py torch|jax|tensorflow THREADS: the work of benchmarks/models.cpp by a peer.

For each line on standard input, "chain" or "mlp sgd|adagrad BATCH", seconds a step on standard
output; nan for what that peer is not asked to do.
"""
import os
import sys
import time

engine, threads = sys.argv[1], int(sys.argv[2])
if threads == 1:  # JAX has no flag that holds
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

rng = np.random.default_rng(0)
BATCHES = 20


def batches(size):
    return [
        (rng.random((size, 784), dtype=np.float32), rng.integers(0, 10, size).astype(np.int32))
        for _ in range(BATCHES)
    ]


def weights():
    return [
        (rng.standard_normal((784, 500)) * 0.05).astype(np.float32),
        np.zeros(500, np.float32),
        (rng.standard_normal((500, 10)) * 0.05).astype(np.float32),
        np.zeros(10, np.float32),
    ]


def jax_work():
    import jax
    import jax.numpy as jnp

    def chain():
        def body(v, w):
            for _ in range(500):
                v = v * w
                v = v + 1e-3
            return v

        f, v, w = jax.jit(body), jnp.full(16, 0.5), jnp.full(16, 0.999)
        return lambda: f(v, w).block_until_ready()

    def mlp(rule, size):
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

    return chain, mlp


def torch_work():
    import torch

    torch.set_num_threads(threads)

    def mlp(rule, size):
        nn = torch.nn
        model = nn.Sequential(nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 10))
        optim = (
            torch.optim.SGD(model.parameters(), 0.1)
            if rule == "sgd"
            else torch.optim.Adagrad(model.parameters(), 0.1, initial_accumulator_value=0.1)
        )
        data = [(torch.from_numpy(x), torch.from_numpy(t).long()) for x, t in batches(size)]
        k = 0

        def once():
            nonlocal k
            x, t = data[k % BATCHES]
            k += 1
            optim.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x), t)
            loss.backward()
            optim.step()
            return float(loss)

        return once

    return None, mlp


def tensorflow_work():
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()

    def mlp(rule, size):
        graph = tf1.Graph()
        with graph.as_default():
            x = tf1.placeholder(tf.float32, [size, 784])
            t = tf1.placeholder(tf.int32, [size])
            w = [tf1.Variable(v) for v in weights()]
            hidden = tf.nn.relu(tf.matmul(x, w[0]) + w[1])
            logits = tf.matmul(hidden, w[2]) + w[3]
            rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits)
            loss = tf.reduce_mean(rows)
            optim = tf1.train.GradientDescentOptimizer if rule == "sgd" else tf1.train.AdagradOptimizer
            train = optim(0.1).minimize(loss)
            init = tf1.global_variables_initializer()
        config = tf1.ConfigProto()
        if threads == 1:  # else each step is handed to another thread
            config.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
        session = tf1.Session(graph=graph, config=config)
        session.run(init)
        call = session.make_callable([loss, train], feed_list=[x, t])
        data, k = batches(size), 0

        def once():
            nonlocal k
            result = call(*data[k % BATCHES])
            k += 1
            return result

        return once

    return None, mlp


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


chain, mlp = {"jax": jax_work, "torch": torch_work, "tensorflow": tensorflow_work}[engine]()
made = {}
for line in sys.stdin:
    words = line.split()
    if line not in made:
        made[line] = None
        if words[0] == "mlp":
            made[line] = mlp(words[1], int(words[2]))
        elif chain:
            made[line] = chain()
        if made[line]:
            seconds(made[line])
    print(seconds(made[line]) if made[line] else "nan", flush=True)
