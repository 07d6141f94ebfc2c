"""Shared fixtures: random models, padded batches, a tiny binary corpus, and the fairseq commands on it."""

import argparse
import contextlib
import io
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

import lwc_fairseq  # noqa: F401  (registers the models)
from front_door import FrontDoor
from lwc_fairseq import cli
from lwc_fairseq.models.abd import ABDConfig, ABDModel
from lwc_fairseq.models.abd_lwc import ABDLWCConfig, ABDLWCModel
from lwc_fairseq.models.lwc_transformer import LWCTransformerConfig, LWCTransformerModel
from lwc_fairseq.models.rnnsearch import RecurrentModel
from lwc_fairseq.modules.mixed_attention import flash_kernel
from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.loading import refuse_only_without_weights

ROOT = Path(__file__).resolve().parent.parent
PAD, EOS = 1, 2


def make_dictionary(types: int) -> Dictionary:
    """A dictionary of `types` types, including the four special ones of fairseq."""
    dictionary = Dictionary()
    for i in range(types - len(dictionary)):
        dictionary.add_symbol(f"w{i}")
    return dictionary


def make_lwc(types: int = 17, dtype: torch.dtype = torch.float64, seed: int = 0, **settings) -> LWCTransformerModel:
    """A small model without dropout, in evaluation mode, with all weights drawn again from N(0, 0.3²)."""
    sizes = {"layers": 3, "embed_dim": 16, "ffn_embed_dim": 24, "attention_heads": 2, "dropout": 0.0}
    positions = {"max_source_positions": 50, "max_target_positions": 50}
    config = LWCTransformerConfig(**{**sizes, **positions, **settings})
    return make_model(LWCTransformerModel, config, make_dictionary(types), make_dictionary(types), dtype, seed)


def make_abd_lwc(types: int = 17, dtype: torch.dtype = torch.float64, seed: int = 0, **settings) -> ABDLWCModel:
    """A small model, as `make_lwc`."""
    sizes = {"layers": 3, "embed_dim": 16, "ffn_embed_dim": 24, "attention_heads": 2, "dropout": 0.0}
    positions = {"max_source_positions": 50, "max_target_positions": 50}
    config = ABDLWCConfig(**{**sizes, **positions, **settings})
    return make_model(ABDLWCModel, config, make_dictionary(types), make_dictionary(types), dtype, seed)


def make_deepatt(
    variant: str = "deepatt",
    types: tuple[int, int] = (15, 17),
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    **settings,
) -> RecurrentModel:
    """A small DeepAtt, one of its relatives or RNNSearch, as `make_lwc`; `types` are those of source and target."""
    layers = {} if variant in ("rnnsearch", "mheadnmt") else {"attention_layers": 3}
    sizes = {"embed_dim": 6, "hidden_dim": 8, "attention_heads": 2 if variant == "mheadnmt" else 0, "dropout": 0.0}
    config = MODEL_DATACLASS_REGISTRY[variant](**{**layers, **sizes, **settings})
    return make_model(ARCH_MODEL_REGISTRY[variant], config, *map(make_dictionary, types), dtype, seed)


def make_abd(types: tuple[int, int] = (15, 17), dtype: torch.dtype = torch.float64, seed: int = 0, **settings):
    """A small ABD model, as `make_lwc`."""
    config = ABDConfig(**{"embed_dim": 6, "hidden_dim": 8, "dropout": 0.0, **settings})
    return make_model(ABDModel, config, *map(make_dictionary, types), dtype, seed)


def make_rnmt(
    variant: str = "abd_rnmt",
    types: tuple[int, int] = (15, 17),
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    **settings,
):
    """A small `rnmt` or `abd_rnmt`, as `make_lwc`."""
    sizes = {"embed_dim": 8, "decoder_layers": 2, "attention_heads": 2, "dropout": 0.0}
    config = MODEL_DATACLASS_REGISTRY[variant](**{**sizes, **settings})
    return make_model(ARCH_MODEL_REGISTRY[variant], config, *map(make_dictionary, types), dtype, seed)


def make_transformer(types: int = 17, arch: str = "transformer_small", **settings) -> torch.nn.Module:
    """fairseq's Transformer, small, in single precision, with its own initial weights and without dropout."""
    sizes = {"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 16, "encoder_layers": 2, "decoder_layers": 2}
    args = argparse.Namespace(**sizes, dropout=0.0, **settings)
    ARCH_CONFIG_REGISTRY[arch](args)
    task = SimpleNamespace(source_dictionary=make_dictionary(types), target_dictionary=make_dictionary(types))
    return ARCH_MODEL_REGISTRY[arch].build_model(args, task).eval()


def make_model(model_class, config, source: Dictionary, target: Dictionary, dtype: torch.dtype, seed: int):
    """Built as a task would, in evaluation mode, with all weights drawn again from N(0, 0.3²)."""
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    torch.set_default_dtype(dtype)
    try:
        model = refuse_only_without_weights(model_class.build_model, config, task)
    finally:
        torch.set_default_dtype(torch.float32)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    return model.eval()


def random_batch(lengths: list[tuple[int, int]], types: int = 17, seed: int = 0, left_pad_source: bool = True):
    """Source tokens (B, N) with EOS and target input (B, M) with EOS as start symbol, for given (n, m)."""
    generator = torch.Generator().manual_seed(seed)

    def sentence(length):
        return torch.randint(4, types, (length - 1,), generator=generator)

    eos = torch.tensor([EOS])
    source = [torch.cat([sentence(n), eos]) for n, _ in lengths]
    target = [torch.cat([eos, sentence(m)]) for _, m in lengths]
    return pad(source, left=left_pad_source), pad(target, left=False)


def without_padding(row: torch.Tensor) -> list[int]:
    return row[row.ne(PAD)].tolist()


def pad(sentences: list[torch.Tensor], left: bool) -> torch.Tensor:
    """Stack sentences with padding on one side."""
    width = max(len(sentence) for sentence in sentences)
    padded = torch.full((len(sentences), width), PAD)
    for row, sentence in zip(padded, sentences, strict=True):
        row[width - len(sentence) if left else 0 :][: len(sentence)] = sentence
    return padded


def with_scripts(environment) -> dict[str, str]:
    """An environment in which the scripts of the Python that runs the tests are found first."""
    return {**environment, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"}


LONGEST_FILES = (
    *("test_cuda.py", "test_kill.py", "test_readme.py", "test_features.py", "test_same_answer.py", "test_recipes.py"),
    *("test_installed.py", "test_table_command.py", "test_saving.py", "test_checkpoints.py", "test_resume.py"),
)


def pytest_collection_modifyitems(items):
    """Put the files that take longest first, so that the processes of pytest-xdist end at about the same time."""
    order = {name: i for i, name in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


os.environ["no_proxy"] = "127.0.0.1"  # servers of tests are here, and `urllib` would ask a proxy for them
FRONT_DOOR = FrontDoor(with_scripts(os.environ))


@pytest.fixture(autouse=True)
def fixed_seed():
    """Each test draws the same numbers alone and after any others: other ones than generators with small seeds draw."""
    torch.manual_seed(20180701)


@pytest.fixture(scope="session", autouse=True)
def closed_front_door():
    yield
    FRONT_DOOR.close()


def run(*command, check: bool = True, stdin: str | None = None, cwd: Path = ROOT, **environment):
    """Run a command in the environment in which the tests began. If it fails, show its output.

    `os.environ` is not read again: what the tests import changes it.
    """
    command = [str(part) for part in command]
    environment = {**FRONT_DOOR.environment, **environment}
    if FRONT_DOOR.knows(command, environment):
        done = FRONT_DOOR.run(command, cwd, stdin)
    else:
        text = {"encoding": "utf-8", "errors": "surrogateescape"}
        done = subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, env=environment, **text)
    return checked(done) if check else done


def run_python(*arguments, check: bool = True, cwd: Path = ROOT, path: Sequence[Path] = ()):
    """Run a Python file, or code after "-c", in a process that has imported PyTorch and fairseq before.

    Args:
        path: folders for PYTHONPATH.
    """
    done = FRONT_DOOR.run(["python", *map(str, arguments)], cwd, path=path)
    return checked(done) if check else done


def heed_interrupt() -> None:
    """Undo that a script that runs the tests with `&` makes them, and all that they start, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def checked(done):
    """A command that has succeeded. If it has not, the test fails and shows its output."""
    if done.returncode:
        pytest.fail(f"{' '.join(done.args)}\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}")
    return done


def refused(*command, **settings) -> str:
    """The last line of a command, which must fail without a traceback."""
    if command[0] == "python":
        done = run_python(*command[1:], check=False, **settings)
    else:
        done = run(*command, check=False, **settings)
    assert done.returncode, done.stdout[-1000:]
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr.strip().splitlines()[-1]


def refusal(*arguments) -> str:
    """What lwc-fairseq says when it refuses arguments, as `refused`, without a process of its own."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), pytest.raises((UserError, SystemExit)) as raised:
        args = cli.parser().parse_args(list(map(str, arguments)))
        args.call(args)
    return said.getvalue() + str(raised.value)


TINY_TRAINING = (
    *("--optimizer", "adam", "--lr", "3e-3", "--criterion", "label_smoothed_cross_entropy", "--max-tokens", "400"),
    *("--no-epoch-checkpoints", "--seed", "1", "--log-format", "simple", "--cpu"),
)
TINY_LWC = (
    *("--user-dir", "lwc_fairseq", "--arch", "lwc_transformer_small", "--layers", "2"),
    *("--embed-dim", "16", "--ffn-embed-dim", "32", "--attention-heads", "2", "--dropout", "0.1"),
)
TINY_STOCK = (
    *("--arch", "transformer", "--encoder-layers", "1", "--decoder-layers", "1", "--encoder-embed-dim", "8"),
    *("--encoder-ffn-embed-dim", "8", "--decoder-attention-heads", "2", "--encoder-attention-heads", "2"),
)
"""A Transformer of fairseq."""
TASK = ("--user-dir", "lwc_fairseq", "--task", "concat_translation")
TINY_RECURRENT = ("--embed-dim", "12", "--hidden-dim", "16", "--init-std", "0.3")
LONG = pytest.mark.long
BIDIRECTIONAL = ("--criterion", "bidirectional_cross_entropy", "--label-smoothing", "0.1")
FAMILIES = {
    "lwc": TINY_LWC[2:],
    "deepatt": ("--arch", "deepatt", "--attention-layers", "2", *TINY_RECURRENT),
    "abd": ("--arch", "abd", *TINY_RECURRENT, *BIDIRECTIONAL),
    "abd_lwc": (*TINY_LWC[2:], "--arch", "abd_lwc", *BIDIRECTIONAL),
}
"""The flags of a small model of each family; after TINY_TRAINING, since the last --criterion counts."""
EACH_FAMILY = pytest.mark.parametrize("family", FAMILIES)
ONE_FAMILY = pytest.mark.parametrize(
    "family", [pytest.param(family, marks=() if family == "lwc" else LONG) for family in FAMILIES]
)
"""For a test of code that all families share: one in the short run, each of them in the long one."""
TWO_PROCESSES = ("torchrun", "--standalone", "--nproc_per_node", "2", "--no-python")


@pytest.fixture(scope="session")
def tiny_text(tmp_path_factory) -> Path:
    """200 random sentence pairs over 20 words: the target is the source in upper case, backwards."""
    folder = tmp_path_factory.mktemp("text")
    draw = random.Random(1)
    words = [f"{a}{b}" for a in "bdfgk" for b in "aeio"]
    for split, size in (("train", 200), ("valid", 20), ("test", 20)):
        source = [draw.choices(words, k=draw.randint(1, 7)) for _ in range(size)]
        (folder / f"{split}.de").write_text("".join(" ".join(line) + "\n" for line in source))
        (folder / f"{split}.en").write_text("".join(" ".join(line[::-1]).upper() + "\n" for line in source))
    return folder


def binarize(text: Path, out: Path, *flags: str) -> Path:
    """fairseq-preprocess of a folder with train, valid and test."""
    prefixes = [f"--{split}pref={text / split}" for split in ("train", "valid", "test")]
    run("fairseq-preprocess", "-s", "de", "-t", "en", *prefixes, "--destdir", out, *flags)
    return out


@pytest.fixture(scope="session")
def tiny_data(tiny_text, tmp_path_factory) -> Path:
    """The pairs of `tiny_text`, binary, with a joined dictionary."""
    return binarize(tiny_text, tmp_path_factory.mktemp("data") / "bin", "--joined-dictionary")


@pytest.fixture(scope="session")
def tiny_checkpoint(tiny_data, tmp_path_factory) -> Path:
    """A checkpoint of a small LWC model after a few updates."""
    folder = tmp_path_factory.mktemp("lwc")
    task = ("--task", "concat_translation", "--max-update", "12", "--save-dir", folder)
    run("fairseq-train", tiny_data, *TINY_LWC, *TINY_TRAINING, *task)
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def checkpoints(tiny_data, tmp_path_factory) -> dict[str, Path]:
    """A checkpoint of each family after a few updates, all with the same dictionaries."""
    folder = tmp_path_factory.mktemp("families")
    for family, flags in FAMILIES.items():
        out = ("--max-update", "20", "--save-dir", folder / family)
        run("fairseq-train", tiny_data, *TASK, *TINY_TRAINING, *flags, *out)
    return {family: folder / family / "checkpoint_last.pt" for family in FAMILIES}


def require_flash() -> None:
    """Skip a test if PyTorch lacks flash attention for packed sentences, as 2.6 does."""
    if flash_kernel() is None:
        pytest.skip("this PyTorch has no flash attention for packed sentences")


def assert_same_end(one: Path, other: Path) -> None:
    """Weights and optimizer of the last checkpoints in two folders are equal bit for bit, after as many updates."""
    saved, expected = (torch.load(folder / "checkpoint_last.pt") for folder in (one, other))
    torch.testing.assert_close(saved["model"], expected["model"], rtol=0, atol=0)
    torch.testing.assert_close(saved["last_optimizer_state"], expected["last_optimizer_state"], rtol=0, atol=0)
    assert saved["optimizer_history"][-1]["num_updates"] == expected["optimizer_history"][-1]["num_updates"]


def saved_updates(checkpoint: Path) -> int:
    """After how many updates a checkpoint was saved."""
    return torch.load(checkpoint)["optimizer_history"][-1]["num_updates"]


def assert_resumed(done, updates: int) -> None:
    """A training that ran has gone on from a checkpoint after so many updates. (From the start, it would end alike.)"""
    assert re.search(rf"Loaded checkpoint .* @ {updates} updates\)", done.stdout + done.stderr)


def hypotheses(output: str) -> list[tuple[str, float]]:
    """Text and score of the H- lines that fairseq-generate or fairseq-interactive printed, in order of the input."""
    found = {}
    for line in output.splitlines():
        if line.startswith("H-"):
            number, score, text = line[2:].split("\t")
            found[int(number)] = (text, float(score))
    return [found[number] for number in sorted(found)]
