"""CUDA without a GPU: every model on the simulated device of `pretended_cuda`, with its kernels and waits counted."""

import json
import os
import re

import pytest
from fairseq.models import ARCH_MODEL_REGISTRY

from conftest import LONG, ROOT, TASK, TINY_TRAINING, hypotheses, require_flash, run
from pretended_cuda import guard
from pretended_cuda.budgets import STEPS, TINY_WAITS, UPDATES, excess, family_of
from pretended_cuda.rows import MODELS, all_rows, short_rows

DEVICE = ROOT / "tests" / "pretended_cuda"
ONLY_OTHER_SIZES = {
    "lwc_transformer",
    "lwc_transformer_base",
    "lwc_transformer_big",
    "lwc_local_small",
    "lwc_local_big",
    "abd_lwc",
    "abd_lwc_base",
    "transformer_base",
    "transformer_big",
}
"""Presets that are another preset with other sizes, which are tiny here, or with windows, which have a row."""
LWC = ("--arch", "lwc_transformer_small", "--layers", "2", "--embed-dim", "16", "--ffn-embed-dim", "16")
LWC += ("--attention-heads", "2", "--dropout", "0")


def lines_of(*command) -> dict[str, dict]:
    """The rows that a program of the device prints, by name."""
    rows = [json.loads(line) for line in run("python", *command).stdout.splitlines()]
    return {row["name"]: row for row in rows}


def on_device(*command, check: bool = True):
    """Run a command on the simulated device."""
    return run("python", DEVICE / "run.py", *command, check=check)


@pytest.fixture(scope="module")
def tiny():
    return lines_of(DEVICE / "measure.py", "--rows", "short")


@pytest.fixture(scope="module")
def large():
    return lines_of(DEVICE / "measure.py", "--rows", "large", "--only", *UPDATES)


@pytest.fixture(scope="module")
def defects():
    return lines_of(DEVICE / "run.py", DEVICE / "defects.py")


def assert_runs_within_budget(model: str, found: dict) -> None:
    """No device or kernel was refused, and the host waits no more often than `TINY_WAITS` allows."""
    assert found["error"] is None
    limits = TINY_WAITS[family_of(model)]
    assert limits.keys() & found.keys() in ({"update", "validation"}, {"step"})
    for part in limits.keys() & found.keys():
        waits = found[part]["ours"]
        assert sum(waits.values()) <= limits[part], (part, waits)


def test_every_preset_is_measured():
    ours = {name for name, model in ARCH_MODEL_REGISTRY.items() if model.__module__.startswith("lwc_fairseq")}
    measured = {flags[flags.index("--arch") + 1] for flags in MODELS.values()}
    assert ours - measured == ONLY_OTHER_SIZES


@pytest.mark.parametrize("row", short_rows(), ids=lambda row: row.name)
def test_model(row, tiny):
    assert_runs_within_budget(row.model, tiny[row.name])


@LONG
def test_every_combination():
    measured = lines_of(DEVICE / "measure.py", "--rows", "all")
    assert set(measured) == {row.name for row in all_rows()}
    for row in all_rows():
        assert_runs_within_budget(row.model, measured[row.name])


@pytest.mark.parametrize("family", UPDATES)
def test_budgets_hold(family, large):
    if "lwc" in family:
        require_flash()
    found = large[family]
    assert found["error"] is None
    assert not excess(found["update"], UPDATES[family])
    assert not excess(found["step"], STEPS[family])


@pytest.mark.parametrize("part", ["update", "step"])
def test_excess_names_what_is_over_the_budget(part, large):
    require_flash()
    found, budget = large["lwc"][part], (UPDATES if part == "update" else STEPS)["lwc"]
    more_kernels = {**found, "kernels": budget.kernels + 1}
    (complaint,) = excess(more_kernels, budget)
    assert "kernels, more than" in complaint
    more_waits = {**found, "ours": {"lwc_fairseq/x.py:1 _local_scalar_dense": budget.waits + 1}}
    (complaint,) = excess(more_waits, budget)
    assert "waits, more than" in complaint and "lwc_fairseq/x.py:1" in complaint


class TestDefects:
    """The device notices the defects that `defects.py` makes on purpose."""

    def test_code_without_a_defect(self, defects):
        """Two kernels forward: product with bias, and sum; three backward: first gradient, product, sum."""
        assert defects["Clean"] == {"name": "Clean", "error": None, "kernels": 5, "ours": {}, "others": {}}

    def test_flash_attention(self, defects):
        require_flash()
        assert defects["flash"]["error"] is None and defects["flash on Ampere"]["error"] is None

    def test_mixed_devices(self, defects):
        assert defects["MixedDevices"]["error"].startswith("DeviceMismatch: aten.add.Tensor")
        assert defects["MixedAttention"]["error"].startswith("DeviceMismatch: scaled_dot_product_attention")
        assert "expected a 'cuda' device type for generator" in defects["HostGenerator"]["error"]

    @pytest.mark.parametrize(
        ("case", "message"),
        [
            ("flash, heads of 12", "head_size must be a multiple of 8"),
            ("flash, heads of 264", "head dimension at most 256"),
            ("flash, fp32", "only support fp16 and bf16"),
            ("flash on Turing", "only supports Ampere GPUs or newer"),
        ],
    )
    def test_refused_kernels(self, case, message, defects):
        require_flash()
        assert message in defects[case]["error"]

    @pytest.mark.parametrize(
        ("case", "reason"),
        [
            ("ItemRead", "_local_scalar_dense"),
            ("BooleanIndex", "boolean index"),
            ("IndexOnHost", "index on the CPU"),
            ("CopyToDevice", "copy to the device"),
            ("CopyToHost", "copy to the host"),
        ],
    )
    def test_waits_are_counted_at_their_line(self, case, reason, defects):
        lines = (DEVICE / "defects.py").read_text().splitlines()
        forward = next(i for i, line in enumerate(lines) if line.startswith(f"class {case}(")) + 3
        assert defects[case]["others"][f"defects.py:{forward} {reason}"] == 1

    def test_an_additional_kernel(self, defects):
        assert defects["AdditionalKernel"]["kernels"] == defects["Clean"]["kernels"] + 1

    def test_in_a_model(self, defects):
        """An LWC model with one defect, measured as the rows are."""
        assert defects["lwc with a CPU tensor"]["error"].startswith("DeviceMismatch")
        waits, waits_without = (sum(defects[name]["ours"].values()) for name in ("lwc with an item", "lwc"))
        assert waits == waits_without + 1


def losses(training) -> list[float]:
    """The losses of the updates in the logs of fairseq-train, which writes them to either stream."""
    logs = training.stdout + training.stderr
    return [float(loss) for loss in re.findall(r"train_inner .*? loss=([\d.]+)", logs)]


TRAINS_TWICE = """
import sys
from fairseq_cli.train import cli_main

*flags, first, second, folder = sys.argv
for updates in (first, second):
    sys.argv = [*flags, updates, "--save-dir", folder]
    cli_main()
"""


def test_commands_compute_what_they_compute_on_a_cpu(tiny_data, tmp_path):
    """Training in single precision, resumed, and generation."""
    flags = [tiny_data, *TASK, *TINY_TRAINING, *LWC, "--log-interval", "1", "--max-update"]
    on_cpu = run("fairseq-train", *flags, "3", "--save-dir", tmp_path / "cpu")
    without_cpu_flag = [flag for flag in flags if flag != "--cpu"]
    twice = tmp_path / "twice.py"
    twice.write_text(TRAINS_TWICE)
    found = losses(on_device(twice, *without_cpu_flag, "2", "3", tmp_path / "cuda"))
    expected = losses(on_cpu)
    assert len(expected) == 3 and found == pytest.approx(expected, abs=2e-3)
    generate = ("fairseq-generate", tiny_data, *TASK[:2], "--gen-subset", "test", "--max-len-b", "6")
    path = ("--path", tmp_path / "cuda" / "checkpoint_last.pt")
    translated, again = on_device(*generate, *path).stdout, run(*generate, *path, "--cpu").stdout
    assert [text for text, _ in hypotheses(translated)] == [text for text, _ in hypotheses(again)]


EXISTING = [
    ("modules/test_mixed_attention.py", "flash_path", 2),
    pytest.param("models/test_deepatt.py", "test_cuda", 7, marks=LONG),
    pytest.param("trust/test_numbers.py", "extreme and cuda", 9, marks=LONG),
]
"""Files with tests that need a GPU, a choice of these, and their number."""


@pytest.mark.parametrize(("file", "chosen", "number"), EXISTING)
def test_tests_that_need_a_gpu_pass_on_the_device(file, chosen, number):
    if chosen == "flash_path":
        require_flash()
    pytest_command = ("pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", ROOT / "tests" / file)
    output = on_device(*pytest_command, "-k", chosen).stdout
    assert f"{number} passed" in output and "skipped" not in output


def test_unknown_command():
    done = on_device("fairseq-tarin", check=False)
    assert done.returncode == 2 and "fairseq-tarin is neither a Python file nor a command" in done.stderr


def test_each_installed_pytorch_has_a_guard_of_its_own(monkeypatch):
    """The library names the folder of its PyTorch, and does not load when that environment is gone."""
    here = guard.library_path()
    monkeypatch.setattr(guard, "torch_folder", lambda: "another environment")
    assert guard.library_path() != here


@LONG
def test_processes_may_build_the_guard_at_once(tmp_path):
    program = "from pretended_cuda.guard import load_guard; load_guard(); import torch; print(torch.ones(1).sum())"
    script = f"for i in 1 2; do python -c '{program}' & done; wait -n && wait -n"
    run("bash", "-c", script, XDG_CACHE_HOME=str(tmp_path), PYTHONPATH=str(DEVICE.parent))
    (library,) = (tmp_path / "lwc_fairseq").iterdir()
    assert library.suffix == ".so" and os.access(library, os.R_OK)
