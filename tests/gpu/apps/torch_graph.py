"""A training-like step in a CUDA graph: warm-up on a side stream, capture, replays with new data."""
import torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
static = torch.randn(64, 256, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side), torch.no_grad():
    for _ in range(3):
        model(static)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    output = model(static)
for i in range(5):
    static.copy_(torch.full((64, 256), float(i), device="cuda"))
    graph.replay()
    print("replay", i, "%.6f" % output.sum().item())
del graph, output
torch.cuda.synchronize()
torch.cuda.empty_cache()
print("done")
