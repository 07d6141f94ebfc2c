"""Half precision on a CPU: in fairseq's optimizers, and bfloat16 in the commands."""

import re
from argparse import Namespace

import pytest
import torch
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer, MemoryEfficientFP16Optimizer
from fairseq.optim.sgd import SGD
from omegaconf import OmegaConf

from conftest import FAMILIES, LONG, TASK, TINY_TRAINING, hypotheses, run, run_python
from lwc_fairseq import load
from lwc_fairseq.optim import FusedAdam, FusedAdamConfig
from lwc_fairseq_compat import UserError, precision


def parameters(dtype=torch.half):
    draw = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=draw).to(dtype)) for shape in ((3, 2), (5,), (1, 4))]


def test_amp_unscales_gradients_once():
    """An update by SGD is that of single precision; fairseq's own is too small by the scale."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = AMPOptimizer.__new__(AMPOptimizer)
    optimizer.fp32_optimizer = SGD(Namespace(lr=[0.5], momentum=0.0, weight_decay=0.0), [weight])
    optimizer._grad_scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    optimizer.backward((weight * torch.tensor([1.0, 2.0, 3.0])).sum())
    optimizer.clip_grad_norm(0.0)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.tensor([0.5, 0.0, -0.5]))


def flat_optimizer(own):
    """An optimizer of fairseq with a flat copy of the parameters, as on the device None, which is the CPU."""
    optimizer = FP16Optimizer.__new__(FP16Optimizer)
    optimizer.fp16_params, optimizer._needs_sync = own, True
    flat = torch.nn.Parameter(torch.randn(sum(one.numel() for one in own)))
    flat.grad = torch.full_like(flat, 7.0)
    optimizer.fp32_params = {None: flat}
    return optimizer


@pytest.mark.parametrize("without_gradient", [None, 1])
def test_gradients_are_copied_as_by_fairseq(without_gradient):
    copies = []
    for sync in (FP16Optimizer._sync_fp16_grads_to_fp32, FP16Optimizer._sync_fp16_grads_to_fp32.__wrapped__):
        own = parameters()
        for number, one in enumerate(own):
            one.grad = None if number == without_gradient else (one * 3).detach()
        optimizer = flat_optimizer(own)
        sync(optimizer)
        assert not optimizer._needs_sync
        copies.append(optimizer.fp32_params[None].grad)
    assert torch.equal(*copies)


def test_parameters_are_copied_back_as_by_fairseq():
    ours, theirs = parameters(), parameters()
    one, other = flat_optimizer(ours), flat_optimizer(theirs)
    other.fp32_params = one.fp32_params
    one._sync_fp32_params_to_fp16()
    FP16Optimizer._sync_fp32_params_to_fp16.__wrapped__(other)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[0], parameters()[0])


def test_an_optimizer_without_memory_efficient_updates_is_named():
    own = parameters()
    adam = FusedAdam(FusedAdamConfig(lr=[1e-3]), own)
    cfg = OmegaConf.create({"optimizer": {"_name": "fused_adam"}, "common": {"bf16": False}})
    with pytest.raises(UserError, match="--memory-efficient-fp16 does not work with --optimizer fused_adam"):
        MemoryEfficientFP16Optimizer(cfg, own, adam)


def losses(done) -> list[float]:
    """The losses that a command has logged: of each update, or of a set."""
    return [float(loss) for loss in re.findall(r"\bloss[= ]([0-9.]+)", done.stdout + done.stderr)]


@pytest.fixture(scope="module", params=["lwc", pytest.param("deepatt", marks=LONG), pytest.param("abd", marks=LONG)])
def trainings(request, tiny_data, tmp_path_factory):
    """Models after three updates by each option of precision: what the command logged, its folder."""
    done = {}
    for option in ("", "--bf16", "--amp"):
        folder = tmp_path_factory.mktemp("trained")
        flags = (*TASK, *TINY_TRAINING, *FAMILIES[request.param], "--dropout", "0", "--max-update", "3")
        logged = run("fairseq-train", tiny_data, *flags, "--log-interval", "1", "--save-dir", folder, *option.split())
        done[option] = logged, folder
    return done


VALIDATES = """
import torch
from fairseq_cli.validate import cli_main

autocast = set()
torch.nn.modules.module.register_module_forward_pre_hook(
    lambda module, _: autocast.add(torch.is_autocast_enabled("cpu")) if isinstance(module, torch.nn.Embedding) else None
)
cli_main()
print(autocast)
"""
"""A validation, after which it prints whether the model was autocast. Losses are too coarse to show it."""


class TestBfloat16:
    def test_losses_are_those_of_32_bits_but_for_rounding(self, trainings):
        single, half, mixed = (losses(logged) for logged, _ in trainings.values())
        assert len(single) == 5 and half == mixed  # both are autocast
        assert half == pytest.approx(single, rel=2e-2) and half != single

    def test_a_checkpoint_has_32_bits(self, trainings):
        state = torch.load(trainings["--bf16"][1] / "checkpoint_last.pt")
        tensors = [*state["model"].values(), *state["last_optimizer_state"]["state"][0].values()]
        assert all(tensor.dtype != torch.bfloat16 for tensor in tensors if torch.is_tensor(tensor))

    def test_a_gpu_could_go_on_without_the_option(self, trainings):
        """The options of precision and the scale of losses do not reach the checkpoint."""
        state = torch.load(trainings["--amp"][1] / "checkpoint_last.pt")
        common = state["cfg"]["common"]
        assert not (common["bf16"] or common["amp"] or common["tpu"])
        assert "loss_scale" not in state["last_optimizer_state"]

    def test_translation(self, trainings, tiny_data):
        folder = trainings[""][1]
        generate = ("fairseq-generate", tiny_data, *TASK, "--gen-subset", "test", "--max-len-b", "6", "--cpu")
        command = (*generate, "--path", folder / "checkpoint_last.pt")
        single, half = (hypotheses(run(*command, *option).stdout) for option in ((), ("--bf16",)))
        scores = [sum(score for _, score in found) / len(found) for found in (single, half)]
        assert scores[0] == pytest.approx(scores[1], rel=2e-2) and scores[0] != scores[1]

    def test_validation(self, trainings, tiny_data):
        path = trainings[""][1] / "checkpoint_last.pt"
        command = (tiny_data, *TASK, "--path", path, "--cpu", "--max-tokens", "99")
        single, half = (run_python("-c", VALIDATES, *command, *option) for option in ((), ("--bf16",)))
        assert [done.stdout.splitlines()[-1] for done in (single, half)] == ["{False}", "{True}"]
        assert len(losses(half)) == 1 and losses(half) == pytest.approx(losses(single), rel=1e-2)

    def test_load(self, trainings, tiny_data, monkeypatch):
        monkeypatch.setattr(precision, "seconds_of_product", lambda matrix: 1.0)
        model = load(trainings[""][1] / "checkpoint_last.pt", tiny_data, bf16=True)
        assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
        assert len(model.translate(["a", "b c"], beam=2)) == 2


@pytest.mark.parametrize(("seconds_of_bfloat16", "slower"), [(3.0, True), (0.5, False)])
def test_a_processor_that_is_slower_with_bfloat16_is_told(monkeypatch, caplog, seconds_of_bfloat16, slower):
    seconds = {torch.float32: 1.5, torch.bfloat16: seconds_of_bfloat16}
    monkeypatch.setattr(precision, "seconds_of_product", lambda matrix: seconds[matrix.dtype])
    precision.log_if_slower("--bf16")
    told = "on this processor, matrix products in bfloat16 take 2.0 times as long as in 32 bits: leave out --bf16"
    assert [record.getMessage() for record in caplog.records] == ([told] if slower else [])
