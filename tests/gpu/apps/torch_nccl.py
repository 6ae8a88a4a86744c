"""torch_nccl.py N: all-reduce and all-to-all between N processes on N GPUs."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank(r, n, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("XLOG_TEST_PORT", "29511"))
    torch.cuda.set_device(r)
    dist.init_process_group("nccl", rank=r, world_size=n)
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
    processes = [mp.Process(target=rank, args=(r, n, out)) for r in range(n)]
    for p in processes:
        p.start()
    for line in sorted(out.get() for _ in range(n)):
        print(*line)
    for p in processes:
        p.join()
    print("exits", [p.exitcode for p in processes])
