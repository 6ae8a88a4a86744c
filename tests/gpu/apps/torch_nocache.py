"""Run with PYTORCH_NO_CUDA_MEMORY_CACHING=1. Counts cudaMalloc and cudaFree with the profiler, independently of the log,
between two allocations of a size that nothing else has."""
import json
import os
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

MARK = 7654321


def work():
    total = 0.0
    for i in range(200):
        a = torch.full((64 + i, 128), float(i), device="cuda")
        total += (a @ a.T).mean().item()
    return total


torch.zeros(1, device="cuda")
work()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    first = torch.empty(MARK, dtype=torch.uint8, device="cuda")
    total = work()
    second = torch.empty(MARK, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    prof.export_chrome_trace(path)
    with open(path) as f:
        names = [e.get("name") for e in json.load(f)["traceEvents"] if e.get("cat") == "cuda_runtime"]
print("total", round(total, 3))
print("cudaMalloc", names.count("cudaMalloc"), "cudaFree", names.count("cudaFree"))
