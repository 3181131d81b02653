# SPDX-License-Identifier: Apache-2.0
# read_back.py PROGRAM: what tests/programs/event_files.cpp writes, read by TensorBoard's own reader
# and, where it is installed, by TensorFlow. Exits with 77 where there is no TensorBoard.
import glob
import os
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.compat.proto import graph_pb2
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)


def expect(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got}, expected {expected}")


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder], check=True)
    expect("files", len(glob.glob(folder + "/events.out.tfevents.*")), 1)
    events = event_accumulator.EventAccumulator(folder)
    events.Reload()

    loss = [(e.step, round(e.value, 6)) for e in events.Scalars("loss")]
    expect("loss", loss, [(10 * i, round(1 / (i + 1), 6)) for i in range(5)])

    weights = events.Histograms("weights")[0]
    h = weights.histogram_value
    expect("weights", (weights.step, h.min, h.max, h.num, h.sum, h.sum_squares),
           (10, -2, 3, 6, 3, 19))
    expect("elements in buckets", sum(h.bucket), 6)
    expect("buckets", len(h.bucket), len(h.bucket_limit))

    grey = events.Images("grey")[0]
    expect("image", (grey.step, grey.height, grey.width), (3, 2, 3))
    expect("PNG", grey.encoded_image_string[:8], b"\x89PNG\r\n\x1a\n")

    notes = events.Tensors("notes")[0]
    expect("notes", (notes.step, list(notes.tensor_proto.string_val)), (4, [b"**bold**"]))

    graph = graph_pb2.GraphDef.FromString(events.Graph().SerializeToString())
    nodes = {n.name: n for n in graph.node}
    y = nodes["layer/sum"]
    expect("y", (y.op, y.device), ("sum", "/job:localhost/replica:0/task:0/cpu:1"))
    expect("inputs of y", list(y.input), ["x"])

    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    try:
        import tensorflow as tf
    except ImportError:
        print("TensorFlow is not installed: records were not compared")
        sys.exit(0)
    for i, record in enumerate(tf.data.TFRecordDataset(folder + "/examples")):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        expect("number", list(feature["number"].int64_list.value), [i])
        expect("text", list(feature["text"].bytes_list.value), [f"number {i}".encode()])
        expect("values", list(feature["values"].float_list.value), [0.5 * i, -1])
    expect("examples", i, 2)
