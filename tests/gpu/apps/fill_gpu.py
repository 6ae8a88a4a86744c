# fill_gpu.py: takes all of the GPU in blocks of 3 GiB, and exits with 3 when it is refused.
import torch

kept = []
try:
    while True:
        kept.append(torch.empty(3 << 30, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    print("blocks", len(kept))
raise SystemExit(3)
