# SPDX-License-Identifier: Apache-2.0
"""torch's eager scalar add: for each line on standard input, prints seconds per add."""
import sys
import time

import torch

torch.set_num_threads(1)
x, y = torch.tensor(1.5), torch.tensor(2.5)
with torch.inference_mode():
    for _ in sys.stdin:
        begin = time.perf_counter()
        for _ in range(20_000):
            x + y
        print((time.perf_counter() - begin) / 20_000, flush=True)
