"""fairseq 0.12.2 on today's stack: the patches, and the stock models that they keep alive."""

import collections
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import CommonConfig
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from omegaconf import OmegaConf

import lwc_fairseq_compat
from conftest import LONG, ROOT, TINY_TRAINING, hypotheses, run
from lwc_fairseq_compat import UserError

SIZES = {"embed-dim": 16, "ffn-embed-dim": 32, "attention-heads": 2, "layers": 2}
STOCK = {
    "transformer": [f"--{side}-{name}={value}" for side in ("encoder", "decoder") for name, value in SIZES.items()],
    "lstm": [
        *("--encoder-embed-dim=16", "--decoder-embed-dim=16", "--decoder-out-embed-dim=16"),
        *("--encoder-hidden-size=16", "--decoder-hidden-size=16", "--encoder-layers=1", "--decoder-layers=1"),
    ],
}


@pytest.mark.parametrize("arch", STOCK)
def test_stock_models_train_resume_and_generate(arch, tiny_data, tmp_path):
    train = ("fairseq-train", tiny_data, "--arch", arch, *STOCK[arch], *TINY_TRAINING, "--save-dir", tmp_path)
    run(*train, "--max-update", "3", "--eval-bleu", "--best-checkpoint-metric", "bleu")
    resumed = run(*train, "--max-update", "6", "--eval-bleu", "--best-checkpoint-metric", "bleu")
    assert "Loaded checkpoint" in resumed.stdout + resumed.stderr
    output = run("fairseq-generate", tiny_data, "--path", tmp_path / "checkpoint_last.pt", "--beam", "2", "--cpu")
    assert len(hypotheses(output.stdout)) == 20
    assert "Mask Type" not in output.stderr


def test_stock_hydra_train_validate_interactive_and_score(tiny_data, tmp_path):
    sizes = [flag.removeprefix("--").replace("-", "_") for flag in STOCK["transformer"]]
    overrides = [
        *(f"task.data={tiny_data}", "task=translation", "criterion=cross_entropy", "optimizer=adam"),
        *("lr_scheduler=fixed", "optimization.max_update=2", "optimization.lr=[0.001]", "dataset.max_tokens=400"),
        *("common.cpu=true", f"checkpoint.save_dir={tmp_path / 'out'}"),
        *("+model._name=transformer", *(f"+model.{size}" for size in sizes)),
    ]
    run("fairseq-hydra-train", *overrides, cwd=tmp_path)
    checkpoint = tmp_path / "out" / "checkpoint_last.pt"
    run("fairseq-validate", tiny_data, "--path", checkpoint, "--max-tokens", "400", "--cpu", "--task", "translation")
    said = run("fairseq-interactive", tiny_data, "--path", checkpoint, "--cpu", stdin="ba de\n").stdout
    assert len(hypotheses(said)) == 1

    (tmp_path / "text").write_text("the cat sat on the mat\n")
    score = run("fairseq-score", "--sys", tmp_path / "text", "--ref", tmp_path / "text").stdout
    assert "BLEU4 = 100.00" in score


@LONG
def test_two_processes_train_and_resume_the_stock_transformer(tiny_data, tmp_path):
    train = (
        *("torchrun", "--standalone", "--nproc_per_node", "2", "--no-python", "fairseq-train", tiny_data),
        *("--arch", "transformer", *STOCK["transformer"], *TINY_TRAINING, "--save-dir", tmp_path),
    )
    run(*train, "--max-update", "2", OMP_NUM_THREADS="1")
    resumed = run(*train, "--max-update", "4", OMP_NUM_THREADS="1")
    assert "Loaded checkpoint" in resumed.stdout + resumed.stderr


def test_stock_transformer_has_no_dead_weights_and_loads_checkpoints_that_have():
    from fairseq.models.transformer import TransformerConfig
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    layer = TransformerEncoderLayerBase(TransformerConfig())
    state = layer.state_dict()
    assert "fc1.weight" in state and "fc1_weight" not in state and "in_proj_weight" not in state
    old = {**state, **{name: torch.zeros(1) for name in lwc_fairseq_compat._FUSED_KERNEL_WEIGHTS}}
    assert layer.load_state_dict(old).missing_keys == []


def test_activation_is_idempotent_and_fairseq_dataclasses_hash_by_identity():
    before = list(sys.meta_path)
    lwc_fairseq_compat.activate()
    assert sys.meta_path == before
    one, other = CommonConfig(), CommonConfig()
    assert one == other and hash(one) != hash(other)


def test_other_dataclasses_stay_as_they_are():
    from dataclasses import dataclass

    @dataclass
    class Mutable:
        value: int = 0

    with pytest.raises(ValueError, match="mutable default"):

        @dataclass
        class Holder:
            field: Mutable = Mutable()  # noqa: RUF009


def test_a_program_without_fairseq_pays_for_one_small_module():
    """Not timed: what is imported decides. The compat module pulls in nothing that torch has not already."""
    code = (
        "import sys, torch; before = set(sys.modules); sys.modules.pop('lwc_fairseq_compat');"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'Fairseq' not in type(f).__name__];"
        "import lwc_fairseq_compat; lwc_fairseq_compat.activate(); print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_weights_only_loading_takes_what_fairseq_writes(tmp_path):
    import argparse

    state = {"args": argparse.Namespace(arch="lstm"), "counts": np.array([1, 2]), "metric": np.array([0.5])}
    torch.save(state, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")["args"].arch == "lstm"


class Payload:
    def __reduce__(self):
        return (open, ("executed", "w"))


def test_weights_only_loading_still_refuses_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"cfg": Payload()}, tmp_path / "x.pt")
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    with pytest.raises(UserError, match="cannot read checkpoint"):
        load_checkpoint_to_cpu(str(tmp_path / "x.pt"))
    assert not (tmp_path / "executed").exists()


def test_a_configuration_sent_by_rank_0_loads_and_only_there(tmp_path, monkeypatch):
    sent = {"cfg": OmegaConf.create({"model": {"layers": 3, "lr": [0.1]}}), "counts": collections.OrderedDict(a=1)}
    torch.save(sent, tmp_path / "x.pt")
    with pytest.raises(Exception, match="DictConfig"):
        torch.load(tmp_path / "x.pt")

    data = (tmp_path / "x.pt").read_bytes()
    received = iter([torch.LongTensor([len(data)]), torch.ByteTensor(list(data))])
    monkeypatch.setattr(distributed_utils, "get_rank", lambda group: 1)
    monkeypatch.setattr(distributed_utils, "broadcast", lambda tensor, **_: tensor.copy_(next(received)))
    assert distributed_utils._broadcast_object_slow(None, 0, None, torch.device("cpu")) == sent


@pytest.mark.parametrize("module", ["lwc_fairseq", "lwc_fairseq.models.lwc_transformer"])
def test_without_fairseq_the_import_says_what_to_run(module):
    code = (
        "import sys; sys.modules['fairseq'] = None\n"
        f"try:\n    import {module}\nexcept ModuleNotFoundError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip().endswith("install it with: pip install --no-deps fairseq==0.12.2"), done.stderr
    assert len(done.stdout.strip().splitlines()) == 1


READ_AHEAD = """
import torch
from fairseq.data.iterators import BufferedIterator

rows = torch.utils.data.DataLoader(range(10**6), batch_size=1, collate_fn=torch.tensor)
for row in BufferedIterator(50, rows):
    if row > 20:
        raise SystemExit(3)
"""


def test_a_command_that_ends_within_an_epoch_keeps_its_exit_status():
    ended = subprocess.run([sys.executable, "-c", READ_AHEAD], capture_output=True, text=True)
    assert ended.returncode == 3 and "terminate called" not in ended.stderr


def test_a_copied_checkpoint_is_whole_or_the_old_one(tmp_path, monkeypatch):
    old, new = tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint1.pt"
    old.write_text("old")
    new.write_text("new")
    PathManager.copy(str(new), str(old), overwrite=True)
    assert old.read_text() == "new" and len(list(tmp_path.iterdir())) == 2

    def half(source, target):
        Path(target).write_text("ha")
        raise OSError("no space left")

    monkeypatch.setattr(shutil, "copyfile", half)
    with pytest.raises(lwc_fairseq_compat.UserError, match=r"cannot write checkpoint .*no space left"):
        PathManager.copy(str(new), str(old), overwrite=True)
    assert old.read_text() == "new" and len(list(tmp_path.iterdir())) == 2
