# SPDX-License-Identifier: Apache-2.0
# read_back.py PROGRAM: what tests/programs/event_files.cpp writes, read by TensorBoard's own reader,
# by Google's protocol buffers and, where it is installed, by TensorFlow. Exits with 77 where there
# is no TensorBoard.
import glob
import math
import os
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
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


def example_class():
    """tf.Example, which TensorBoard does not have."""
    field = descriptor_pb2.FieldDescriptorProto
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")
    for name, fields in {
        "BytesList": [("value", 1, many, field.TYPE_BYTES)],
        "FloatList": [("value", 1, many, field.TYPE_FLOAT)],
        "Int64List": [("value", 1, many, field.TYPE_INT64)],
        "Feature": [("bytes_list", 1, one, "BytesList"), ("float_list", 2, one, "FloatList"),
                    ("int64_list", 3, one, "Int64List")],
        "Entry": [("key", 1, one, field.TYPE_STRING), ("value", 2, one, "Feature")],
        "Features": [("feature", 1, many, "Entry")],
        "Example": [("features", 1, one, "Features")],
    }.items():
        message = file.message_type.add(name=name)
        for field_name, number, label, kind in fields:
            if isinstance(kind, str):
                message.field.add(name=field_name, number=number, label=label,
                                  type=field.TYPE_MESSAGE, type_name=".t." + kind)
            else:
                message.field.add(name=field_name, number=number, label=label, type=kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


def records(path):
    with open(path, "rb") as f:
        while head := f.read(12):
            yield f.read(struct.unpack("<Q", head[:8])[0])
            f.read(4)


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

    expect("bytes", list(events.Tensors("bytes")[0].tensor_proto.string_val), [rb"f\xfcr"])
    expect("größe", [(e.step, e.value) for e in events.Scalars("größe")], [(6, 2)])

    graph = graph_pb2.GraphDef.FromString(events.Graph().SerializeToString())
    nodes = {n.name: n for n in graph.node}
    y = nodes["layer/sum"]
    expect("y", (y.op, y.device), ("sum", "/job:localhost/replica:0/task:0/cpu:1"))
    expect("inputs of y", list(y.input), ["x"])

    Example = example_class()
    for i, record in enumerate(records(folder + "/examples")):
        feature = {e.key: e.value for e in Example.FromString(record).features.feature}
        expect("number", list(feature["number"].int64_list.value), [i])
        expect("text", list(feature["text"].bytes_list.value), [f"number {i}".encode()])
        expect("values", list(feature["values"].float_list.value), [0.5 * i, -1])
        for name, kind in [("no number", "int64_list"), ("no text", "bytes_list"),
                           ("no value", "float_list")]:
            expect(name, [f.name for f, _ in feature[name].ListFields()], [kind])
    expect("examples", i, 2)

    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    try:
        import tensorflow as tf
    except ImportError:
        print("TensorFlow is not installed: it has not read the records")
        sys.exit(0)
    for i, record in enumerate(tf.data.TFRecordDataset(folder + "/examples")):
        parsed = tf.io.parse_single_example(record, {
            "number": tf.io.FixedLenFeature([], tf.int64),
            "no number": tf.io.FixedLenFeature([0], tf.int64),
            "no text": tf.io.FixedLenFeature([0], tf.string),
            "no value": tf.io.FixedLenFeature([0], tf.float32)})
        expect("number", parsed["number"].numpy(), i)
    expect("examples", i, 2)
