"""`lwc-fairseq doctor` on this environment, and on broken ones."""

import sys
from importlib.metadata import version

import pytest
import torch
from packaging.requirements import Requirement

from conftest import LONG, run
from environments import environment_without
from lwc_fairseq.cli import doctor
from lwc_fairseq.cli.doctor import of_commands, of_cuda, of_import, of_packages, of_requirement


def test_of_a_sound_environment():
    done = run("lwc-fairseq", "doctor")
    lines = done.stdout.splitlines()
    assert "no problems found" in lines
    found = {line.split("  ")[0]: line for line in lines}
    for name in (
        "Python",
        "lwc_fairseq",
        "torch",
        "numpy",
        "sacrebleu",
        "fairseq",
        "compatibility",
        "commands",
        "CUDA",
    ):
        assert name in found
    assert version("torch") in found["torch"] and "active" in found["compatibility"]


def test_a_problem_has_a_command_and_an_exit_status(monkeypatch, capsys):
    problem = doctor.Finding("numpy", "1.26, but it must be >=2", "pip install 'numpy>=2'")
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Finding("Python", "3.11"), problem])
    assert doctor.doctor_command(None) == 1
    assert capsys.readouterr().out.endswith(
        "1 problem found\n\nnumpy: 1.26, but it must be >=2\n    pip install 'numpy>=2'\n"
    )


def test_every_requirement_of_the_package_is_looked_at():
    names = {finding.name for finding in of_packages()}
    assert {"torch", "hydra-core", "omegaconf", "subword-nmt", "matplotlib"} <= names
    assert "pytest" not in names  # that of an extra


def test_requirements():
    assert of_requirement(Requirement("numpy>=2")).mend is None
    assert of_requirement(Requirement("numpy<2")).mend.endswith("pip install 'numpy<2'")
    missing = of_requirement(Requirement("no-such-package>=1"))
    assert missing.value == "missing" and missing.mend.endswith("pip install 'no-such-package>=1'")


def test_a_compatibility_module_that_is_switched_off(monkeypatch):
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    assert of_import().mend == "unset TORCH_DEVICE_BACKEND_AUTOLOAD"


def test_fairseq_that_does_not_import(monkeypatch, tmp_path):
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").write_text("raise ValueError('mutable default')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    finding = of_import()
    assert "ValueError: mutable default" in finding.value and "--force-reinstall --no-deps" in finding.mend


def test_commands_of_another_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert of_commands().value == "fairseq-train is not on the PATH"
    other = tmp_path / "fairseq-train"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    finding = of_commands()
    assert str(other) in finding.value and "activate" in finding.mend
    other.write_text(f"#!{sys.executable}\n")  # as pip install --target writes it
    assert of_commands() == doctor.Finding("commands", str(tmp_path))


@pytest.mark.parametrize(("driver", "problem"), [(None, False), ("/usr/bin/nvidia-smi", True)])
def test_a_build_without_cuda_is_a_problem_only_where_there_is_a_driver(monkeypatch, driver, problem):
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: driver)
    (finding,) = of_cuda()
    assert bool(finding.mend) == problem


INSTALL_FAIRSEQ = "lwc_fairseq needs fairseq 0.12.2; install it with: pip install --no-deps fairseq==0.12.2"


@pytest.mark.parametrize(
    ("missing", "install", "advice"),
    [
        ("fairseq", "--no-deps fairseq==0.12.2", INSTALL_FAIRSEQ),
        ("torch", "'torch>=2.6'", "No module named 'torch'; install what the package needs with: pip install ."),
        pytest.param("omegaconf", "'omegaconf<2.4,>=2.3'", "No module named 'omegaconf'; install what", marks=LONG),
    ],
    ids=["fairseq", "torch", "omegaconf"],
)
def test_what_is_missing(tmp_path, missing, install, advice):
    """The doctor works and says how to install it. Any other command, and a model in Python, says what is missing."""
    here = {"check": False, "cwd": tmp_path, **environment_without(tmp_path, missing)}
    done = run("lwc-fairseq", "doctor", **here)
    assert done.returncode == 1 and not done.stderr
    if missing == "torch":
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libcudart.so: cannot open')")
        broken = run("lwc-fairseq", "doctor", **here | {"PYTHONPATH": tmp_path})
        assert not broken.stderr and "PyTorch: it does not import: libcudart.so: cannot open\n" in broken.stdout
        assert broken.stdout.endswith("-m pip install --force-reinstall torch\n")
        (tmp_path / "torch" / "__init__.py").unlink()
        (tmp_path / "torch").rmdir()
    command = f"{tmp_path / 'bin' / 'python'} -m pip install {install}"
    assert done.stdout.endswith(f"\n1 problem found\n\n{missing}: missing\n    {command}\n")

    done = run("lwc-fairseq", "table", "lwc_table3", "--data", "data", "--out", "out", **here)
    assert done.returncode == 1 and done.stderr.startswith(f"lwc-fairseq: error: {advice}")
    assert len(done.stderr.splitlines()) == 1

    done = run("python", "-c", "import lwc_fairseq; lwc_fairseq.load('checkpoint.pt', 'data')", **here)
    assert done.stderr.splitlines()[-1].startswith(f"ModuleNotFoundError: {advice}")
