"""Print the flag of training in half precision, if this machine has no GPU and half precision is much faster here."""

import torch

from lwc_fairseq_compat.precision import bfloat16_ratio

MUCH_FASTER = 0.7
"""Of an update of a model of width 128, products are half, and the casts for half precision take some time."""

if not torch.cuda.is_available() and bfloat16_ratio() < MUCH_FASTER:
    print("--bf16")
