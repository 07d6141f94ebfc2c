"""fairseq 0.12.2 on current Python, PyTorch and numpy: the patches, and fairseq's own models with them."""

import collections
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Optional

import numpy as np
import pytest
import torch
from fairseq import utils
from fairseq.dataclass.configs import CommonConfig, EMAConfig
from fairseq.dataclass.utils import interpret_dc_type
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.models.ema.ema import EMA
from omegaconf import OmegaConf

import lwc_fairseq_compat
from conftest import LONG, TINY_TRAINING, TWO_PROCESSES, hypotheses, make_transformer, random_batch, run, run_python
from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.stack import FUSED_KERNEL_WEIGHTS

SIZES = {"embed-dim": 16, "ffn-embed-dim": 32, "attention-heads": 2, "layers": 2}
STOCK = {
    "transformer": [f"--{side}-{name}={value}" for side in ("encoder", "decoder") for name, value in SIZES.items()],
    "lstm": [
        *("--encoder-embed-dim=16", "--decoder-embed-dim=16", "--decoder-out-embed-dim=16"),
        *("--encoder-hidden-size=16", "--decoder-hidden-size=16", "--encoder-layers=1", "--decoder-layers=1"),
    ],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_shared_weight_is_saved_once(dtype):
    """Also where fairseq copies weights, as it does with those in half precision."""
    model = make_transformer().to(dtype)
    moved = utils.move_to_cpu({"model": model.state_dict(), "step": torch.tensor(3.0)})
    assert moved["step"] == 3
    weights = moved["model"]
    places = {weight.data_ptr() for weight in weights.values()}
    assert len(places) == len({weight.data_ptr() for weight in model.state_dict().values()}) < len(weights)
    for name, weight in model.state_dict().items():
        assert weights[name].dtype == torch.float32 and torch.equal(weights[name], weight.float())


@pytest.mark.parametrize("ema_fp32", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_averages_of_shared_weights(ema_fp32, dtype):
    model = make_transformer().to(dtype)
    first = model.decoder.output_projection.weight.clone()
    ema = EMA(model, EMAConfig(ema_decay=0.5, ema_fp32=ema_fp32))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    ema.step(model)
    for weight in (ema.model.decoder.output_projection.weight, ema.model.encoder.embed_tokens.weight):
        assert torch.allclose(weight, first + 0.5, atol=1e-2 if dtype == torch.bfloat16 else 1e-6)


def test_a_process_that_hangs_is_killed():
    script = """if 1:
        import time, torch
        from fairseq.distributed.distributed_timeout_wrapper import DistributedTimeoutWrapper
        DistributedTimeoutWrapper(torch.nn.Linear(1, 1), timeout=1)(torch.ones(1))
        time.sleep(100)
    """
    assert run("python", "-c", script, check=False, PYTHONUNBUFFERED="1").returncode == -signal.SIGKILL


@pytest.mark.parametrize("arch", ["transformer", pytest.param("lstm", marks=LONG)])
def test_stock_models_train_resume_and_generate(arch, tiny_data, tmp_path):
    train = ("fairseq-train", tiny_data, "--arch", arch, *STOCK[arch], *TINY_TRAINING, "--save-dir", tmp_path)
    run(*train, "--max-update", "3", "--eval-bleu", "--best-checkpoint-metric", "bleu")
    resumed = run(*train, "--max-update", "6", "--eval-bleu", "--best-checkpoint-metric", "bleu")
    assert "Loaded checkpoint" in resumed.stdout + resumed.stderr
    output = run("fairseq-generate", tiny_data, "--path", tmp_path / "checkpoint_last.pt", "--beam", "2", "--cpu")
    assert len(hypotheses(output.stdout)) == 20
    assert "Mask Type" not in output.stderr


def test_unknown_words_have_the_source_word_of_the_largest_weight():
    """The weights of a word end with that of the end symbol, which is no word."""
    weights = [["0.1", "0.2", "0.7"], ["0.5", "0.2", "0.3"]]
    assert utils.replace_unk("<unk> <unk>", "one two", weights, {}, "<unk>") == "two one"
    assert utils.replace_unk("three", "", [["1.0"], ["1.0"]], {}, "<unk>") == "three"
    assert utils.replace_unk("<unk> <unk>", "one two", [(1, 0), (0, 1)], {}, "<unk>") == "two one"


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
        *(*TWO_PROCESSES, "fairseq-train", tiny_data),
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
    old = {**state, **{name: torch.zeros(1) for name in FUSED_KERNEL_WEIGHTS}}
    assert layer.load_state_dict(old).missing_keys == []


def test_the_stock_transformer_can_be_compiled_by_torchscript():
    model = make_transformer()
    sources, inputs = random_batch([(4, 3), (2, 5)])
    batch = sources, sources.ne(1).sum(1), inputs
    torch.testing.assert_close(torch.jit.script(model)(*batch)[0], model(*batch)[0])


def test_activation_is_idempotent_and_fairseq_dataclasses_hash_by_identity():
    before = list(sys.meta_path)
    lwc_fairseq_compat.activate()
    assert sys.meta_path == before
    one, other = CommonConfig(), CommonConfig()
    assert one == other and hash(one) != hash(other)


@pytest.mark.parametrize("kind", [str | None, None | str, Optional[str]])  # noqa: UP045
def test_optional_types_in_each_spelling(kind):
    """Since Python 3.14 they are one type."""
    assert interpret_dc_type(kind) is str


def test_workers_are_copies_of_the_process():
    program = "import lwc_fairseq_compat, fairseq, multiprocessing; print(multiprocessing.get_start_method())"
    assert run_python("-c", program).stdout == "fork\n"


@pytest.mark.parametrize(("chosen", "method"), [(None, "fork"), ("forkserver", "forkserver")])
def test_a_program_may_choose_how_workers_begin(chosen, method):
    """As on Python 3.14, where the default is forkserver."""
    program = f"""
import multiprocessing, sys
from lwc_fairseq_compat.stack import fork_workers
multiprocessing.set_start_method({chosen!r}, force=True)
multiprocessing.context._default_context._default_context = multiprocessing.get_context("forkserver")
sys.version_info = (3, 14)
fork_workers()
print(multiprocessing.get_start_method())
"""
    assert run_python("-c", program).stdout == f"{method}\n"


def test_attention_does_not_use_cudnn():
    program = "import torch, fairseq; print(torch.backends.cuda.cudnn_sdp_enabled())"
    assert run_python("-c", program).stdout == "False\n"


def test_other_dataclasses_stay_as_they_are():
    from dataclasses import dataclass

    @dataclass
    class Mutable:
        value: int = 0

    with pytest.raises(ValueError, match="mutable default"):

        @dataclass
        class Holder:
            field: Mutable = Mutable()  # noqa: RUF009


IMPORTED_AGAIN = """
import sys
import torch
import importlib.util

sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "lwc_fairseq_compat.hooks"]
for name in [name for name in sys.modules if name.startswith("lwc_fairseq_compat")]:
    del sys.modules[name]
before = set(sys.modules)
import lwc_fairseq_compat
lwc_fairseq_compat.activate()
importlib.util.find_spec("fairseq")
print(*sorted(set(sys.modules) - before))
"""


def test_a_program_without_fairseq_pays_for_three_small_files():
    """The test compares what is imported instead of times. Looking for fairseq imports nothing else."""
    done = subprocess.run([sys.executable, "-c", IMPORTED_AGAIN], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["lwc_fairseq_compat", "lwc_fairseq_compat.errors", "lwc_fairseq_compat.hooks"]


def test_a_broken_installation_breaks_nothing_else(tmp_path):
    """Every `import torch` of the environment calls the package."""
    package = Path(lwc_fairseq_compat.__file__).parent
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "lwc_fairseq_compat" / "hooks.py").unlink()
    program = "import torch, lwc_fairseq_compat; lwc_fairseq_compat.activate(); print(lwc_fairseq_compat.__file__)"
    done = run("python", "-c", program, PYTHONPATH=str(tmp_path), cwd=tmp_path)
    assert done.stdout.startswith(str(tmp_path))
    assert "No module named 'lwc_fairseq_compat.hooks'" in done.stderr and "install it again" in done.stderr


PATCHES_OF_ONE_FUNCTION = """
import lwc_fairseq_compat.processes  # out of turn
import fairseq.trainer

function, files = fairseq.trainer.Trainer.train_step, []
while function:
    patch = getattr(function, "patch", function)
    files.append(patch.__code__.co_filename.rpartition("/")[2])
    function = getattr(function, "__wrapped__", None)
print(*files)
"""


def test_patches_of_one_function_are_applied_in_the_order_of_the_files():
    done = subprocess.run([sys.executable, "-c", PATCHES_OF_ONE_FUNCTION], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["processes.py", "batches.py", "contextlib.py", "trainer.py"]


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
    """What may be read elsewhere, such as the type `int`, may still be read afterwards."""
    sent = {"cfg": OmegaConf.create({"model": {"layers": 3, "lr": [0.1]}}), "counts": collections.OrderedDict(a=1)}
    torch.save(sent, tmp_path / "x.pt")
    with pytest.raises(Exception, match="DictConfig"):
        torch.load(tmp_path / "x.pt")

    data = (tmp_path / "x.pt").read_bytes()
    received = iter([torch.LongTensor([len(data)]), torch.ByteTensor(list(data))])
    monkeypatch.setattr(distributed_utils, "get_rank", lambda group: 1)
    monkeypatch.setattr(distributed_utils, "broadcast", lambda tensor, **_: tensor.copy_(next(received)))
    assert distributed_utils._broadcast_object_slow(None, 0, None, torch.device("cpu")) == sent
    with pytest.raises(Exception, match="DictConfig"):
        torch.load(tmp_path / "x.pt")
    torch.save({"type": int}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt") == {"type": int}


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
    with pytest.raises(UserError, match=r"cannot write checkpoint .*no space left"):
        PathManager.copy(str(new), str(old), overwrite=True)
    assert old.read_text() == "new" and len(list(tmp_path.iterdir())) == 2
