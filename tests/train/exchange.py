# SPDX-License-Identifier: Apache-2.0
# exchange.py PROGRAM: the safetensors package and NumPy read what tests/programs/checkpoints.cpp
# writes, and the program what they write. Exits with 77 where there are no such packages.
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from safetensors.numpy import load_file, save_file
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

arrays = {
    "layer/w": np.array([[1, 2, 3], [4, 5, 6]], np.float32),
    "count": np.array(-7, np.int64),
    "wide": np.array([0.1, -0.5], np.float64),
    "flags": np.array([True, False, True]),
    "bytes": np.array([0, 255], np.uint8),
    "ids": np.array([[3, -3]], np.int32),
}
# Every pattern of 16 bits, as binary16 and as the upper half of a float.
bits = np.arange(1 << 16, dtype=np.uint16)
wide = {"half": bits.view(np.float16).astype(np.float32),
        "brain": (bits.astype(np.uint32) << 16).view(np.float32)}


def write_narrow(path):
    size = bits.nbytes
    header = json.dumps({
        "half": {"dtype": "F16", "shape": [len(bits)], "data_offsets": [0, size]},
        "brain": {"dtype": "BF16", "shape": [len(bits)], "data_offsets": [size, 2 * size]},
    }).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + 2 * bits.tobytes())


def compare(name, got, expected):
    if (got.dtype != expected.dtype or got.shape != expected.shape
            or not np.array_equal(got, expected, equal_nan=got.dtype.kind == "f")):
        sys.exit(f"{name}: got {got}, expected {expected}")


with tempfile.TemporaryDirectory() as folder:
    path = lambda name: os.path.join(folder, name)
    npy = lambda name: os.path.basename(name) + ".npy"
    save_file(arrays, path("python.safetensors"))
    write_narrow(path("narrow.safetensors"))
    for name, array in arrays.items():
        np.save(path("python_" + npy(name)), array)
    subprocess.run([sys.argv[1], "exchange", folder], check=True)
    read = load_file(path("deft.safetensors"))
    if read.keys() != arrays.keys():
        sys.exit(f"names: {sorted(read)}")
    for name, expected in arrays.items():
        compare(name, read[name], expected)
        compare(npy(name), np.load(path("deft_" + npy(name))), expected)
    for name, got in load_file(path("widened.safetensors")).items():
        compare(name, got, wide[name])
print("equal")
