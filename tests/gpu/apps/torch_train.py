"""A small training run; prints losses and the caching allocator's own count of device allocations."""
import torch

torch.manual_seed(0)
torch.use_deterministic_algorithms(True, warn_only=True)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(128 + 64 * step, 256, device="cuda")
    y = torch.randint(0, 10, (x.shape[0],), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, round(loss.item(), 4))
stats = torch.cuda.memory_stats()
print("num_device_alloc", stats["num_device_alloc"], "num_device_free", stats["num_device_free"])
print("reserved", torch.cuda.memory_reserved())
