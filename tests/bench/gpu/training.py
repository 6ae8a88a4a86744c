"""A training step of a plain network: milliseconds a step (median), and the last loss to its last digit.
training.py [BATCH WIDTH LAYERS STEPS]"""
import statistics
import sys
import time

import torch

batch, width, layers, steps = (int(a) for a in (sys.argv[1:] + ["8192", "4096", "12", "20"][len(sys.argv) - 1:]))
torch.manual_seed(1)
model = torch.nn.Sequential(*[m for _ in range(layers) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
data = torch.randn(batch, width, device="cuda")
times = []
for step in range(steps):
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    value = loss.item()
    times.append((time.perf_counter() - start) * 1e3)
print(f"{statistics.median(times[3:]):.3f} {value!r}")
