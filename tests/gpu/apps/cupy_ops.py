import cupy as cp

cp.random.seed(0)
total = 0.0
for i in range(50):
    a = cp.random.rand(100 + i, 200)
    total += float((a @ a.T).sum())
print(round(total, 3))
pool = cp.get_default_memory_pool()
pool.free_all_blocks()
print(pool.used_bytes())
