"""Segments that grow: cuMemCreate and cuMemMap behind PyTorch's cache. Run with expandable_segments:True.

With `taken`: what cuMemGetInfo says that blocks of 100 MiB take, without a kernel between.
"""
import sys

import torch

if sys.argv[1:] == ["taken"]:
    torch.empty(1, device="cuda")
    before = torch.cuda.mem_get_info()[0]
    held = [torch.empty(100 << 20, dtype=torch.uint8, device="cuda") for _ in range(10)]
    print(before - torch.cuda.mem_get_info()[0])
    sys.exit()
held = []
for i in range(20):
    held.append(torch.full(((i + 1) << 20,), float(i), device="cuda"))
    if i % 3 == 2:
        held.pop(0)
print("sum", sum(t[0].item() for t in held))
print("reserved", torch.cuda.memory_reserved() // 2**20)
held.clear()
torch.cuda.empty_cache()
print("reserved after", torch.cuda.memory_reserved() // 2**20)
big = torch.zeros(300 << 20, dtype=torch.uint8, device="cuda")
print("reserved", torch.cuda.memory_reserved() // 2**20, big.sum().item())
