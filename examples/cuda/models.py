"""The models under test, their data, and the flags of their training."""

import sys
from dataclasses import dataclass
from pathlib import Path

from lwc_fairseq_compat.files import whole_file
from machine import USER_DIR, Machine

CHUNKED = ("--criterion", "chunked_cross_entropy", "--label-smoothing", "0.1")
BOTH = ("--criterion", "bidirectional_cross_entropy", "--label-smoothing", "0.1")
RECURRENT = ("--embed-dim", "128", "--hidden-dim", "256")
TINY_RECURRENT = ("--embed-dim", "12", "--hidden-dim", "16", "--init-std", "0.3")


@dataclass(frozen=True)
class Model:
    """The flags of a family's model, and of a tiny one for the simulated device.

    Args:
        peer: tiny sizes of the fairseq model that the benchmark measures beside it.
        sgd_lr: the learning rate of SGD. A higher one makes LWC's losses jump, and rounding then decides where to; a
            lower one moves those of the recurrent models too little to show a wrong scale.
    """

    arch: str
    sizes: tuple[str, ...]
    tiny: tuple[str, ...]
    criterion: tuple[str, ...]
    peer: tuple[str, ...]
    sgd_lr: str

    def flags(self, machine: Machine) -> tuple[str, ...]:
        sizes = self.tiny if machine.pretended else self.sizes
        return ("--arch", self.arch, *sizes, "--dropout", "0", *self.criterion)


TINY_TRANSFORMER = tuple(
    word
    for side in ("encoder", "decoder")
    for name, size in (("layers", "1"), ("embed-dim", "16"), ("ffn-embed-dim", "32"), ("attention-heads", "2"))
    for word in (f"--{side}-{name}", size)
)
TINY_LSTM = (
    *("--encoder-embed-dim", "12", "--encoder-hidden-size", "16", "--decoder-embed-dim", "12"),
    *("--decoder-hidden-size", "16", "--decoder-out-embed-dim", "12"),
)
MODELS = {
    "lwc": Model(
        "lwc_transformer_small",
        ("--layers", "4"),
        ("--layers", "2", "--embed-dim", "32", "--ffn-embed-dim", "32", "--attention-heads", "4"),
        CHUNKED,
        TINY_TRANSFORMER,
        "0.03",
    ),
    "deepatt": Model("deepatt", RECURRENT, ("--attention-layers", "2", *TINY_RECURRENT), CHUNKED, TINY_LSTM, "0.3"),
    "abd": Model("abd", RECURRENT, TINY_RECURRENT, BOTH, TINY_LSTM, "0.3"),
}
"""A model of each family. No dropout, because a GPU draws other random numbers than a CPU."""


def optimizer(family: str, name: str) -> tuple[str, ...]:
    """The flags of `fused_adam`, or of `sgd`, whose updates show by how much gradients are scaled."""
    values = ("1e-3", "5") if name == "fused_adam" else (MODELS[family].sgd_lr, "0")
    return ("--optimizer", name, "--lr", values[0], "--clip-norm", values[1])


def make_data(machine: Machine) -> Path:
    """Make the data once: sentence pairs of the quickstart's demo corpus, word by word."""
    kind = "tiny_" if machine.pretended else ""
    data, text = machine.out / f"{kind}data", machine.out / f"{kind}text"
    if data.exists():
        return data
    sizes = {"train": 200, "valid": 4, "test": 4} if machine.pretended else {"train": 3000, "valid": 40, "test": 40}
    flags = [word for split, size in sizes.items() for word in (f"--{split}", size)]
    log = machine.out / "data.log"
    machine.run_on_cpu([sys.executable, "examples/quickstart/corpus.py", "--out", text, *flags], log)
    prefixes = [f"--{split}pref={text / split}" for split in sizes]
    binarise = ("fairseq-preprocess", "-s", "de", "-t", "en", "--joined-dictionary", *prefixes)
    with whole_file(data) as making:
        machine.run_on_cpu([*binarise, "--destdir", making], log)
    return data


def training(machine: Machine, folder: Path, family: str, *flags: object) -> list[object]:
    """The command that trains a model in a folder, or resumes it."""
    tokens = 200 if machine.pretended else 2000
    command = ["fairseq-train", make_data(machine), *USER_DIR, "--task", "concat_translation"]
    command += [*MODELS[family].flags(machine), "--max-tokens", tokens, "--seed", "1", "--no-epoch-checkpoints"]
    command += ["--log-format", "json", "--log-interval", "1", "--num-workers", "0", "--save-dir", folder]
    return [*command, *flags]
