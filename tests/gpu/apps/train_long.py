"""A training run of as many steps as are given: a small model, so that it is the tensors that take the time."""
import sys

import torch

torch.manual_seed(0)
layers = []
for width in (256, 224, 192, 160, 128, 96, 64, 32):
    layers += [torch.nn.Linear(width, width - 32 if width > 32 else 10), torch.nn.GELU()]
model = torch.nn.Sequential(*layers[:-1]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
for step in range(int(sys.argv[1])):
    x = torch.randn(32 + step % 64, 256, device="cuda")
    y = torch.randint(0, 10, (x.shape[0],), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", round(loss.item(), 4))
