"""Losses and gradients are finite wherever the input is allowed, and training that meets a NaN says where."""

import pytest
import torch

from conftest import (
    EOS,
    FAMILIES,
    ONE_FAMILY,
    PAD,
    TASK,
    TINY_LWC,
    TINY_TRAINING,
    make_abd,
    make_deepatt,
    make_lwc,
    pad,
    run,
    run_python,
    saved_updates,
)

UNK = 3
SOURCES = {
    "only EOS": [EOS],
    "one word": [5, EOS],
    "all unknown": [UNK] * 6 + [EOS],
    "padding inside": [5, PAD, 6, EOS],
    "EOS inside": [5, EOS, 6, EOS],
    "the longest": [7] * 49 + [EOS],
}
TARGETS = {"only EOS": [EOS], "one word": [8, EOS], "all unknown": [UNK] * 5 + [EOS], "the longest": [9] * 49 + [EOS]}
NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
MODELS = {"lwc": make_lwc, "deepatt": make_deepatt, "abd": make_abd}


def loss_of(model, sources, targets):
    """Summed negative log-likelihood of a padded batch, and all gradients."""
    src, target = (
        pad([torch.tensor(s) for s in sources], left=True),
        pad([torch.tensor(t) for t in targets], left=False),
    )
    prev = pad([torch.tensor([EOS, *t[:-1]]) for t in targets], left=False)
    device = next(model.parameters()).device
    src, target, prev = src.to(device), target.to(device), prev.to(device)
    model.zero_grad()
    out = model(src, src.ne(PAD).sum(1), prev)
    lprobs = model.get_normalized_probs(out, log_probs=True)
    loss = torch.nn.functional.nll_loss(
        lprobs.flatten(0, 1).float(), target.flatten(), ignore_index=PAD, reduction="sum"
    )
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return loss.item(), gradients


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", MODELS)
def test_finite_for_every_kind_of_pair_in_one_batch(family, dtype):
    model = MODELS[family](dtype=dtype).train()
    pairs = [(source, target) for source in SOURCES.values() for target in TARGETS.values()]
    loss, gradients = loss_of(model, *zip(*pairs, strict=True))
    assert torch.isfinite(torch.tensor(loss)) and gradients
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
@pytest.mark.parametrize(("dtype", "scale"), [(torch.float32, 100), (torch.float16, 10), (torch.bfloat16, 100)])
@pytest.mark.parametrize("family", MODELS)
def test_extreme_scores_and_half_precision(family, dtype, scale, device):
    """Scores far apart make one attention weight 1, and masks never a NaN: 0 · ∞ and ∞ - ∞ do not occur.

    In float16 weights are scaled less: at 100 the activations themselves exceed 65504.
    """
    model = MODELS[family](dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    model.to(device=device, dtype=dtype)
    loss, gradients = loss_of(model, SOURCES.values(), [TARGETS["one word"]] * len(SOURCES))
    assert torch.isfinite(torch.tensor(loss))
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@ONE_FAMILY
def test_a_nan_in_training_names_its_batch(tiny_data, tmp_path, family):
    """With a learning rate that is far too high, the weights overflow, and the next loss is NaN."""
    train = ("fairseq-train", tiny_data, *TASK, *TINY_TRAINING, *FAMILIES[family])
    flags = ("--optimizer", "sgd", "--lr", "1e38", "--clip-norm", "0", "--batch-size", "4", "--save-dir", tmp_path)
    failed = run(*train, *flags, check=False)
    last = failed.stderr.strip().splitlines()[-1]
    assert failed.returncode and "error: update 2: gradients are Nan/Inf. Its batch is the training sentences" in last
    numbers = last.partition("sentences ")[2].partition(" (")[0].split(", ")
    assert 1 <= len(numbers) <= 8 and all(0 <= int(number) < 200 for number in numbers)


def test_running_out_of_memory_is_survived_and_names_the_size(tiny_data, tmp_path):
    """What CUDA says when a batch is too large, said here by the third batch."""
    script = """
import sys
from fairseq_cli.train import cli_main
from fairseq.tasks import FairseqTask

train_step = FairseqTask.train_step

def too_large_at_first(self, sample, model, criterion, optimizer, update_num, **kwargs):
    if update_num == 2 and not hasattr(self, "failed"):
        self.failed = True
        raise RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")
    return train_step(self, sample, model, criterion, optimizer, update_num, **kwargs)

FairseqTask.train_step = too_large_at_first
cli_main()
"""
    flags = ("--task", "concat_translation", *TINY_LWC, *TINY_TRAINING, "--max-update", "5", "--save-dir", tmp_path)
    done = run_python("-c", script, tiny_data, *flags)
    log = done.stdout + done.stderr
    assert "attempting to recover from OOM" in log and "target tokens in all: if this happens often, lower" in log
    assert saved_updates(tmp_path / "checkpoint_last.pt") == 5
