import numpy as np

if not hasattr(np, "row_stack"):  # newer NumPy dropped it, and the import of Numba still names it
    np.row_stack = np.vstack
from numba import cuda  # noqa: E402


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] + y[i]


n = 100_000
x = np.arange(n, dtype=np.float32)
for k in range(20):
    dx, dy = cuda.to_device(x), cuda.to_device(x * k)
    out = cuda.device_array(n, dtype=np.float32)
    add[(n + 255) // 256, 256](dx, dy, out)
    print(k, float(out.copy_to_host().sum()))
