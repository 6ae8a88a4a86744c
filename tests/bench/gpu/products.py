"""Matrix products with new memory in each round, as a program without a caching allocator has it (CuPy, no pool): seconds."""
import sys
import time

import cupy

cupy.cuda.set_allocator(None)
width, rounds = (int(a) for a in (sys.argv[1:] + ["8192", "40"][len(sys.argv) - 1:]))
a = cupy.full((width, width), 0.5, dtype=cupy.float32)
for _ in range(2):
    b = a @ a
cupy.cuda.Device().synchronize()
start = time.perf_counter()
for _ in range(rounds):
    b = a @ a
    c = b @ a
cupy.cuda.Device().synchronize()
print(f"{time.perf_counter() - start:.4f} {float(c[0, 0])}")
