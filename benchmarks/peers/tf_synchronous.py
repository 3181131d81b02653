# SPDX-License-Identifier: Apache-2.0
"""Synchronous steps of the demo's model in TensorFlow, on one parameter server and two workers.

tf_synchronous.py replicas: each worker has a graph, and SyncReplicasOptimizer takes both gradients.
tf_synchronous.py towers: the graph of one worker has a tower on each.

For each line on standard input runs the job once, and prints steps a second."""
import json
import os
import socket
import subprocess
import sys
import time

SECONDS = 5  # of training, each with a line of its own
WARM = 2  # seconds


def worker(mode, task, cluster):
    import numpy as np
    import tensorflow as tf

    tf1 = tf.compat.v1
    tf1.disable_v2_behavior()
    spec = tf.train.ClusterSpec(cluster)
    server = tf1.train.Server(spec, job_name="ps" if task < 0 else "worker", task_index=max(task, 0))
    if task < 0 or (mode == "towers" and task == 1):
        print("serves", flush=True)
        server.join()
    random = np.random.RandomState(task)
    images = random.rand(20, 100, 784).astype(np.float32)
    labels = random.randint(0, 10, (20, 100)).astype(np.int32)

    def variables():
        normal, zeros = tf1.truncated_normal_initializer(stddev=0.05), tf1.zeros_initializer()
        return [
            tf1.get_variable("w1", [784, 128], initializer=normal),
            tf1.get_variable("b1", [128], initializer=zeros),
            tf1.get_variable("w2", [128, 10], initializer=normal),
            tf1.get_variable("b2", [10], initializer=zeros),
        ]

    def tower(v):
        x = tf1.placeholder(tf.float32, [100, 784])
        label = tf1.placeholder(tf.int32, [100])
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, v[0]) + v[1]), v[2]) + v[3]
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))
        return x, label, loss

    optimizer = tf1.train.AdagradOptimizer(0.1)
    hooks = []
    if mode == "towers":
        with tf1.device("/job:ps/task:0"):
            v = variables()
            step = tf1.train.get_or_create_global_step()
        towers = []
        for t in range(2):
            with tf1.device(f"/job:worker/task:{t}"):
                x, label, loss = tower(v)
                towers.append((x, label, loss, tf.gradients(loss, v)))
        with tf1.device("/job:ps/task:0"):
            mean = [tf.add_n(list(g)) / 2 for g in zip(*(t[3] for t in towers))]
            train = optimizer.apply_gradients(list(zip(mean, v)), global_step=step)
    else:
        place = tf1.train.replica_device_setter(cluster=spec,
                                                worker_device=f"/job:worker/task:{task}")
        with tf1.device(place):
            v = variables()
            step = tf1.train.get_or_create_global_step()
            towers = [tower(v)]
            optimizer = tf1.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=2,
                                                        total_num_replicas=2)
            train = optimizer.minimize(towers[0][2], global_step=step)
        hooks.append(optimizer.make_session_run_hook(task == 0))
    config = tf1.ConfigProto()
    if mode == "replicas":  # otherwise the chief waits until the other worker is there
        config.device_filters.extend(["/job:ps", f"/job:worker/task:{task}"])
    session = tf1.train.MonitoredTrainingSession(server.target, is_chief=task == 0, hooks=hooks,
                                                 config=config,
                                                 save_summaries_steps=None,
                                                 save_summaries_secs=None,
                                                 log_step_count_steps=None)
    i, begin, last = 0, time.time(), 0
    while True:
        feeds = {}
        for k, t in enumerate(towers):
            feeds[t[0]], feeds[t[1]] = images[(i + k) % 20], labels[(i + k) % 20]
        _, _, now = session.run([train, towers[0][2], step], feeds)
        i += 1
        if i == 1 or time.time() > begin + 1:
            print(begin, (now - last) / (time.time() - begin), flush=True)
            begin, last = time.time(), now


def free_addresses(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def job(mode):
    a = free_addresses(3)
    cluster = json.dumps({"ps": a[:1], "worker": a[1:]})
    tasks = []

    def start(task):
        tasks.append(
            subprocess.Popen([sys.executable, __file__, mode, str(task), cluster],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        return tasks[-1]

    try:
        start(-1)
        # Whoever asks before the variables have values asks again after 30 seconds.
        first, second = (1, 0) if mode == "towers" else (0, 1)
        one = start(first)
        one.stdout.readline()
        two = start(second)
        two.stdout.readline()
        chief, since = two if mode == "towers" else one, time.time() + WARM
        rates = []
        while len(rates) < SECONDS:
            begin, rate = map(float, chief.stdout.readline().split())
            if begin > since:
                rates.append(rate)
        return sum(rates) / SECONDS
    finally:
        for t in tasks:
            t.kill()
            t.wait()


if len(sys.argv) > 2:
    worker(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))
else:
    import importlib.util

    if importlib.util.find_spec("tensorflow"):
        for _ in sys.stdin:
            print(job(sys.argv[1]), flush=True)
