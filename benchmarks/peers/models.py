# SPDX-License-Identifier: Apache-2.0
"""models.py torch|jax|tensorflow THREADS: the work of benchmarks/models.cpp by a peer.

For each line on standard input, "chain" or "mlp sgd|adagrad BATCH", seconds a step on standard
output; nan for what that peer is not asked to do.
"""
import os
import sys
import time

engine, threads = sys.argv[1], int(sys.argv[2])
if threads == 1:  # JAX has no flag that limits its threads
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from common import BATCHES, answer, batches, jax_chain, jax_mlp, torch_mlp, weights


def torch_work():
    import torch

    torch.set_num_threads(threads)
    return None, torch_mlp


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
        if threads == 1:  # otherwise another thread runs each step
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


chain, mlp = {
    "jax": lambda: (jax_chain, jax_mlp),
    "torch": torch_work,
    "tensorflow": tensorflow_work,
}[engine]()


def work(words):
    if words[0] == "mlp":
        return mlp(words[1], int(words[2]))
    return chain() if chain else None


answer(work)
