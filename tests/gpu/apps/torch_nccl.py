"""torch_nccl.py N: all-reduce and all-to-all between N processes on N GPUs.

torch_nccl.py N taken: what cuMemGetInfo says that a second communicator takes, once the libraries' code is loaded.
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def all_to_all(n, group):
    send = torch.ones(n << 20, device="cuda")
    got = torch.empty_like(send)
    dist.all_to_all_single(got, send, group=group)
    torch.cuda.synchronize()


def taken(r, n, out):
    """The first of three communicators loads what is loaded once."""
    start(r, n)
    all_to_all(n, None)
    all_to_all(n, dist.new_group(list(range(n))))
    before = torch.cuda.mem_get_info()[0]
    all_to_all(n, dist.new_group(list(range(n))))
    out.put((r, before - torch.cuda.mem_get_info()[0]))
    dist.destroy_process_group()


def start(r, n):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("XLOG_TEST_PORT", "29511"))
    torch.cuda.set_device(r)
    dist.init_process_group("nccl", rank=r, world_size=n)


def rank(r, n, out):
    start(r, n)
    x = torch.full((1 << 20,), float(r + 1), device="cuda")
    dist.all_reduce(x)
    send = torch.arange(n * 1024, device="cuda", dtype=torch.float32) + 1000 * r
    got = torch.empty_like(send)
    dist.all_to_all_single(got, send)
    big = torch.full((64 << 20,), float(r), device="cuda")
    dist.broadcast(big, 0)
    torch.cuda.synchronize()
    out.put((r, x[0].item(), got.sum().item(), big[-1].item()))
    dist.destroy_process_group()


if __name__ == "__main__":
    n = int(sys.argv[1])
    mp.set_start_method("spawn")
    out = mp.Queue()
    processes = [mp.Process(target=taken if "taken" in sys.argv else rank, args=(r, n, out)) for r in range(n)]
    for p in processes:
        p.start()
    for line in sorted(out.get() for _ in range(n)):
        print(*line)
    for p in processes:
        p.join()
    print("exits", [p.exitcode for p in processes])
