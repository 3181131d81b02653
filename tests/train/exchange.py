# SPDX-License-Identifier: Apache-2.0
# exchange.py PROGRAM: the safetensors package reads what tests/programs/checkpoints.cpp writes, and
# the program what the package writes. Exits with 77 where there is no such package.
import os
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
with tempfile.TemporaryDirectory() as folder:
    save_file(arrays, os.path.join(folder, "python.safetensors"))
    subprocess.run([sys.argv[1], "exchange", folder], check=True)
    read = load_file(os.path.join(folder, "deft.safetensors"))
    if read.keys() != arrays.keys():
        sys.exit(f"names: {sorted(read)}")
    for name, expected in arrays.items():
        got = read[name]
        if got.dtype != expected.dtype or got.shape != expected.shape or (got != expected).any():
            sys.exit(f"{name}: got {got}, expected {expected}")
print("equal")
