# SPDX-License-Identifier: Apache-2.0
# read_back.py PROGRAM: what tests/programs/event_files.cpp writes, read by TensorBoard's own reader
# and, where it is installed, by TensorFlow. Exits with 77 where there is no TensorBoard.
import glob
import math
import os
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.compat.proto import graph_pb2
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)


def expect(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got}, expected {expected}")


def pixels(png):
    """The rows of an 8-bit grey image whose rows are stored without a filter."""
    expect("PNG", png[:8], b"\x89PNG\r\n\x1a\n")
    at, data, width = 8, b"", 0
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + size]
        expect("CRC", struct.unpack(">I", png[at + 8 + size:at + 12 + size])[0],
               zlib.crc32(kind + body))
        if kind == b"IHDR":
            width, _, depth, colors = struct.unpack(">IIBB", body[:10])
            expect("depth and colors", (depth, colors), (8, 0))
        elif kind == b"IDAT":
            data += body
        at += 12 + size
    data = zlib.decompress(data)
    rows = [list(data[i:i + width + 1]) for i in range(0, len(data), width + 1)]
    expect("filters", [r[0] for r in rows], [0] * len(rows))
    return [r[1:] for r in rows]


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
    expect("buckets", len(h.bucket), len(h.bucket_limit))
    expect("limits", list(h.bucket_limit), sorted(h.bucket_limit))
    within = lambda lowest, limit: sum(lowest <= v < limit for v in range(-2, 4))
    expect("elements in buckets", list(h.bucket),
           [within(*ends) for ends in zip([-math.inf, *h.bucket_limit], h.bucket_limit)])

    grey = events.Images("grey")[0]
    expect("image", (grey.step, grey.height, grey.width), (3, 2, 3))
    expect("pixels", pixels(grey.encoded_image_string), [[0, 64, 128], [191, 255, 0]])

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
