"""Every operator of PyTorch on the samples that PyTorch's own tests have for it, forward and backward, without its cache: a line each
with the number of samples, the sum of the results, and the errors."""
import collections
import os
import sys

os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

SAMPLES = 6
part, parts = (int(word) for word in sys.argv[1].split("/")) if len(sys.argv) > 1 else (1, 1)


def total(result):
    leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]
    if any(leaf.requires_grad for leaf in leaves):
        sum(leaf.abs().sum() for leaf in leaves if leaf.requires_grad).backward()
    return sum(float(leaf.detach().abs().double().nan_to_num(0, 0, 0).sum()) for leaf in leaves)


for op in op_db[part - 1::parts]:
    name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
    types = sorted(op.dtypesIfCUDA, key=str)
    if not types:
        continue
    dtype = torch.float32 if torch.float32 in types else types[0]
    errors, count, sums = collections.Counter(), 0, 0.0
    torch.manual_seed(1)
    try:
        for sample in op.sample_inputs("cuda", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point):
            count += 1
            try:
                sums += total(op(sample.input, *sample.args, **sample.kwargs))
            except Exception as error:
                errors[type(error).__name__] += 1
            if count == SAMPLES:
                break
    except Exception as error:
        errors["samples: " + type(error).__name__] += 1
    print(name, count, "empty" if "empty" in name else f"{sums:.3g}", dict(errors), flush=True)
