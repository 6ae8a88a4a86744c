"""Tensors handed to another process through torch.multiprocessing: CUDA IPC of cudaMalloc memory."""
import torch
import torch.multiprocessing as mp


def double(queue, done):
    for _ in range(4):
        tensor = queue.get()
        tensor.mul_(2)
        del tensor
        torch.cuda.synchronize()
        done.put(1)


if __name__ == "__main__":
    mp.set_start_method("spawn")
    queue, done = mp.Queue(), mp.Queue()
    child = mp.Process(target=double, args=(queue, done))
    child.start()
    for i in range(4):
        tensor = torch.full((1 << (10 + i),), float(i + 1), device="cuda")
        queue.put(tensor)
        done.get()
        print("doubled", i, tensor.sum().item())
    child.join()
    print("child", child.exitcode)
