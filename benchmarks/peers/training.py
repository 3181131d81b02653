# SPDX-License-Identifier: Apache-2.0
"""training.py torch|tensorflow THREADS: the work of benchmarks/training.cpp by a peer.

For each line on standard input, "lenet", "lstm" or "records FILE", seconds a step, or a pass over
the file, on standard output; nan for what that peer is not asked to do.
"""
import os
import sys

engine, threads = sys.argv[1], int(sys.argv[2])
if threads == 1:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

from common import answer

BATCH = 64


def images():
    rng = np.random.default_rng(0)
    return (
        rng.random((BATCH, 784), dtype=np.float32),
        rng.integers(0, 10, BATCH).astype(np.int32),
    )


def torch_work():
    import torch

    torch.set_num_threads(threads)
    nn = torch.nn

    def lenet():
        model = nn.Sequential(
            nn.Conv2d(1, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(7 * 7 * 64, 512), nn.ReLU(), nn.Linear(512, 10))
        optim = torch.optim.Adam(model.parameters(), 0.001)
        x, t = images()
        x, t = torch.from_numpy(x).reshape(BATCH, 1, 28, 28), torch.from_numpy(t).long()

        def once():
            optim.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x), t)
            loss.backward()
            optim.step()
            return loss.item()

        return once

    def lstm():
        layer = nn.LSTM(128, 128, batch_first=True)
        x = torch.randn(BATCH, 20, 128)

        def once():
            layer.zero_grad(set_to_none=True)
            outputs, _ = layer(x)
            loss = (outputs * outputs).mean()
            loss.backward()
            return loss.item()

        return once

    return {"lenet": lenet, "lstm": lstm}


def tensorflow_work():
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf1 = tf.compat.v1

    def lenet():
        graph = tf1.Graph()
        with graph.as_default():
            x = tf1.placeholder(tf.float32, [BATCH, 784])
            t = tf1.placeholder(tf.int32, [BATCH])

            def weight(*extents):
                w = tf1.Variable(tf.random.truncated_normal(extents, stddev=0.05))
                return w, tf1.Variable(tf.zeros(extents[-1]))

            def pooled(h, w, b):
                h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, w, 1, "SAME"), b))
                return tf.nn.max_pool2d(h, 2, 2, "VALID")

            h = pooled(tf.reshape(x, [BATCH, 28, 28, 1]), *weight(5, 5, 1, 32))
            h = tf.reshape(pooled(h, *weight(5, 5, 32, 64)), [BATCH, 7 * 7 * 64])
            w, b = weight(7 * 7 * 64, 512)
            h = tf.nn.relu(tf.matmul(h, w) + b)
            w, b = weight(512, 10)
            rows = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=t, logits=tf.matmul(h, w) + b)
            loss = tf.reduce_mean(rows)
            train = tf1.train.AdamOptimizer(0.001).minimize(loss)
            init = tf1.global_variables_initializer()
        config = tf1.ConfigProto()
        if threads == 1:  # otherwise another thread runs each step
            config.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
        session = tf1.Session(graph=graph, config=config)
        session.run(init)
        call = session.make_callable([loss, train], feed_list=[x, t])
        data = images()
        return lambda: call(*data)

    def records(path):
        features = {
            "image": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64),
        }
        data = tf.data.TFRecordDataset(path).map(
            lambda r: tf.io.parse_single_example(r, features)).batch(256)

        def once():
            for _ in data:
                pass

        return once

    return {"lenet": lenet, "records": records}


known = {"torch": torch_work, "tensorflow": tensorflow_work}[engine]()


def work(words):
    return known[words[0]](*words[1:]) if words[0] in known else None


answer(work)
