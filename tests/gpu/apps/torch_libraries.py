"""cuBLAS, cuFFT, cuSOLVER and cuSPARSE through PyTorch."""
import torch

torch.manual_seed(2)
a = torch.randn(500, 500, device="cuda", dtype=torch.float64)
spd = a @ a.T + 500 * torch.eye(500, device="cuda", dtype=torch.float64)
print("matmul %.6f" % spd.sum().item())
print("fft %.6f" % torch.fft.fft2(a).abs().sum().item())
print("irfft %.6f" % torch.fft.irfft(torch.fft.rfft(a)).sum().item())
print("cholesky %.6f" % torch.linalg.cholesky(spd).sum().item())
print("solve %.6f" % torch.linalg.solve(spd, a).abs().sum().item())
print("svd %.6f" % torch.linalg.svdvals(a)[0].item())
print("eigh %.6f" % torch.linalg.eigvalsh(spd)[-1].item())
sparse = a.where(a > 2, torch.zeros((), device="cuda", dtype=torch.float64)).to_sparse_csr()
print("sparse %.6f" % (sparse @ a).sum().item())
