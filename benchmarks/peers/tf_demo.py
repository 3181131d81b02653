# SPDX-License-Identifier: Apache-2.0
"""The demo's job in TensorFlow: one parameter server, two workers, asynchronous Adagrad.

For each line on standard input runs the job once, and prints steps a second of both workers,
seconds from launch to the first step, and the server's resident megabytes."""
import json
import os
import socket
import subprocess
import sys
import time

SECONDS = 5.0  # of training, after a second to warm up


def worker(task, cluster):
    import numpy as np
    import tensorflow as tf

    tf1 = tf.compat.v1
    tf1.disable_v2_behavior()
    spec = tf.train.ClusterSpec(cluster)
    job = "ps" if task < 0 else "worker"
    server = tf1.train.Server(spec, job_name=job, task_index=max(task, 0))
    if job == "ps":
        server.join()
    random = np.random.RandomState(task)
    images = random.rand(20, 100, 784).astype(np.float32)
    labels = random.randint(0, 10, (20, 100)).astype(np.int32)
    place = tf1.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{task}")
    with tf1.device(place):
        normal, zeros = tf1.truncated_normal_initializer(stddev=0.05), tf1.zeros_initializer()
        w1 = tf1.get_variable("w1", [784, 128], initializer=normal)
        b1 = tf1.get_variable("b1", [128], initializer=zeros)
        w2 = tf1.get_variable("w2", [128, 10], initializer=normal)
        b2 = tf1.get_variable("b2", [10], initializer=zeros)
        x = tf1.placeholder(tf.float32, [None, 784])
        label = tf1.placeholder(tf.int32, [None])
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))
        step = tf1.train.get_or_create_global_step()
        train = tf1.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    session = tf1.Session(server.target)
    if task == 0:
        session.run(tf1.global_variables_initializer())
    missing = tf1.report_uninitialized_variables()
    while len(session.run(missing)):
        time.sleep(0.02)
    first, i = None, 0
    while first is None or time.time() < first + SECONDS + 1:
        session.run([train, loss, step], {x: images[i % 20], label: labels[i % 20]})
        i += 1
        first = first or time.time()
        if time.time() < first + 1:
            warm, begin = i, time.time()
    print(first, (i - warm) / (time.time() - begin), flush=True)
    os._exit(0)  # a server cannot be stopped


def free_addresses(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def job():
    a = free_addresses(3)
    cluster = json.dumps({"ps": a[:1], "worker": a[1:]})
    begin = time.time()
    tasks = [
        subprocess.Popen([sys.executable, __file__, str(t), cluster], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True) for t in (-1, 0, 1)
    ]
    try:
        heard = [t.stdout.readline().split() for t in tasks[1:]]
        with open(f"/proc/{tasks[0].pid}/status") as status:
            rss = next(int(l.split()[1]) for l in status if l.startswith("VmRSS")) / 1024
        return sum(float(h[1]) for h in heard), min(float(h[0]) for h in heard) - begin, rss
    finally:
        for t in tasks:
            t.kill()
            t.wait()


if len(sys.argv) > 1:
    worker(int(sys.argv[1]), json.loads(sys.argv[2]))
else:
    import importlib.util

    if importlib.util.find_spec("tensorflow"):
        for _ in sys.stdin:
            print(*job(), flush=True)
