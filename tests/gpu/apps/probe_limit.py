"""Allocates until it is refused and backs off, as servers do to size a cache."""
import torch

free, total = torch.cuda.mem_get_info()
blocks, step = [], 1 << 30
while step >= 1 << 24:
    try:
        blocks.append(torch.empty(step, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        step //= 2
held = sum(b.numel() for b in blocks)
print("held at least 0.9 of what was free: %s, not more: %s" % (held >= 0.9 * free, held <= free))
blocks.clear()
torch.cuda.empty_cache()
x = torch.ones(1000, 1000, device="cuda")
print("works on", (x @ x)[0, 0].item())
