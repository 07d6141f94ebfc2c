"""Defects that the simulated device must notice, in code of this file; run by ``run.py``, it prints what was noticed.

Each line of JSON is a row as `measure.py` prints it.
"""

import argparse
import json
import logging
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from fairseq.utils import import_user_module
from torch import Tensor, nn
from torch.nn import functional as F

from lwc_fairseq.modules.mixed_attention import flash_kernel
from pretended_cuda.capability import set_capability
from pretended_cuda.data import make_data
from pretended_cuda.report import as_json
from pretended_cuda.rows import MODELS
from pretended_cuda.session import Session
from pretended_cuda.tally import counting

WIDTH = 8


class Clean(nn.Module):
    """A module without a defect."""

    def __init__(self):
        super().__init__()
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(x)


class MixedDevices(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.zeros(WIDTH)


class IndexOnHost(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[torch.arange(2)]


class ItemRead(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * x.sum().item()


class BooleanIndex(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[x > 0]


class CopyToDevice(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.zeros(WIDTH).to(x.device)


class CopyToHost(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).cpu()


class MixedAttention(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(super().forward(x)[None], torch.ones(1, 2, WIDTH), x[None])


class AdditionalKernel(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 1


class HostGenerator(Clean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.rand(WIDTH, device=x.device, generator=torch.Generator())


def use(module: Callable[[], nn.Module]) -> dict:
    """Tally of a forward and a backward pass."""
    model = module().cuda()
    x = torch.ones(2, WIDTH, device="cuda")
    with counting() as tally:
        model(x).float().sum().backward()
    return as_json(tally)


def train_lwc(change: Callable[[Tensor], Tensor]) -> dict:
    """An update of a small LWC model, with `change` applied to the states after its last layer."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(make_data(Path(folder), 60, (2, 9), 4), MODELS["lwc"], 4)
    session.model.encoder.stack.norm.register_forward_hook(lambda module, given, out: change(out))
    return as_json(session.train()["update"])


def flash(head: int, dtype: torch.dtype, capability: str = "9.0") -> dict:
    """Flash attention over two sentences, with `head` components in each of two heads."""
    set_capability(capability)
    query = torch.ones(7, 2, head, device="cuda", dtype=dtype, requires_grad=True)
    offsets = torch.tensor([0, 3, 7], dtype=torch.int32, device="cuda")
    attend = flash_kernel()
    with counting() as tally:
        attend(query, query, query, offsets, offsets, 4, 4).sum().backward()
    return as_json(tally)


CASES = {
    "lwc": partial(train_lwc, lambda x: x),
    "lwc with a CPU tensor": partial(train_lwc, lambda x: x + torch.zeros(x.size(-1))),
    "lwc with an item": partial(train_lwc, lambda x: x * x.sum().item()),
    **{kind.__name__: partial(use, kind) for kind in (Clean, *Clean.__subclasses__())},
    "flash": partial(flash, 16, torch.float16),
    "flash on Ampere": partial(flash, 256, torch.bfloat16, "8.0"),
    "flash, heads of 12": partial(flash, 12, torch.float16),
    "flash, heads of 264": partial(flash, 264, torch.float16),
    "flash, fp32": partial(flash, 16, torch.float32),
    "flash on Turing": partial(flash, 16, torch.float16, "7.5"),
}


def main() -> None:
    import_user_module(argparse.Namespace(user_dir="lwc_fairseq"))
    logging.disable(logging.WARNING)
    for name, case in CASES.items():
        try:
            found = {"error": None, **case()}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"name": name, **found}))


if __name__ == "__main__":
    main()
