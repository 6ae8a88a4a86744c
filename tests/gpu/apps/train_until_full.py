# train_until_full.py: trains, fills the memory it may have, recovers, and fills it again.
import sys

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(6)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept = []


def step(batch):
    loss = model(torch.randn(batch, 2048, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def gather(count):
    for _ in range(count):
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))


for _ in range(3):
    step(1024)
try:
    gather(100)
except torch.OutOfMemoryError:
    print("recovers")
    kept.clear()
    torch.cuda.empty_cache()
step(512)
gather(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
