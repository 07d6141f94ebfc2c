"""Training in several processes, on a CPU: the same commands as on several GPUs and machines."""

import contextlib
import json
import os
import re
import shlex
import socket
from textwrap import dedent

import pytest
import torch

from conftest import FAMILIES, LONG, ROOT, TASK, TINY_TRAINING, TWO_PROCESSES, run


def training(data, out, *flags, family: str = "lwc") -> list[str]:
    """A command whose updates do not depend on chance.

    SGD, because Adam would turn gradients that are only rounding errors, such as those of key biases, into full steps.
    """
    order = ("--max-tokens", "9999", "--required-batch-size-multiple", "1", "--log-interval", "1")
    more = ("--log-format", "json", "--dropout", "0", "--optimizer", "sgd", "--lr", "0.1")
    command = ("fairseq-train", data, *TASK, *TINY_TRAINING, *FAMILIES[family], *order, *more)
    return [str(part) for part in (*command, "--save-dir", out, *flags)]


def train(*command):
    return run(*command, OMP_NUM_THREADS="1")


def losses(done) -> list[float]:
    """The training loss of each update, in the order of the log."""
    found = re.findall(r"train_inner \| (\{.*\})", done.stdout + done.stderr)
    return [float(json.loads(line)["loss"]) for line in found]


def weights(folder) -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoint_last.pt")["model"]


def assert_close(one: dict, other: dict) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@LONG
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("backend", ["pytorch_ddp", "legacy_ddp"])
def test_two_processes_are_one_with_the_doubled_batch(tiny_data, tmp_path, family, backend):
    """200 pairs: an epoch is one update, of 200 pairs in one process or of 100 in each of two."""
    updates = ("--max-update", "3", "--ddp-backend", backend)
    one = train(*training(tiny_data, tmp_path / "one", *updates, "--batch-size", "200", family=family))
    two = train(*TWO_PROCESSES, *training(tiny_data, tmp_path / "two", *updates, "--batch-size", "100", family=family))
    assert len(losses(one)) == 3 and losses(two) == pytest.approx(losses(one), abs=2e-3)
    assert_close(weights(tmp_path / "two"), weights(tmp_path / "one"))


@LONG
def test_averages_that_are_new_begin_with_the_weights(tiny_data, tiny_checkpoint, tmp_path):
    flags = ("--store-ema", "--finetune-from-model", str(tiny_checkpoint), "--lr", "0", "--max-update", "1")
    train(*TWO_PROCESSES, *training(tiny_data, tmp_path, *flags))
    averages = torch.load(tmp_path / "checkpoint_last.pt")["extra_state"]["ema"]
    assert_close(averages, torch.load(tiny_checkpoint)["model"])


@pytest.mark.parametrize("first, second", [pytest.param(1, 2, marks=LONG), (2, 1)])
def test_resumes_in_an_epoch_with_another_number_of_processes(tiny_data, tmp_path, first, second):
    """Ten batches of 20: five updates of two, by two processes or by one with --update-freq 2, which does the same."""
    start = {1: ("--update-freq", "2"), 2: ()}

    def go_on(processes, out, updates):
        flags = ("--batch-size", "20", "--max-update", updates, *start[processes])
        return train(*(TWO_PROCESSES if processes == 2 else ()), *training(tiny_data, out, *flags))

    undisturbed = go_on(1, tmp_path / "undisturbed", 4)
    started = go_on(first, tmp_path / "resumed", 2)
    resumed = go_on(second, tmp_path / "resumed", 4)
    assert losses(started) == pytest.approx(losses(undisturbed)[:2], abs=2e-3)
    assert losses(resumed) == pytest.approx(losses(undisturbed)[2:], abs=2e-3)
    assert_close(weights(tmp_path / "resumed"), weights(tmp_path / "undisturbed"))


@LONG
def test_slurm_starts_the_processes(tiny_data, tmp_path):
    """As srun does with two tasks; a stand-in for `scontrol` names the only host."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho localhost\n")
    scontrol.chmod(0o755)
    flags = ("--distributed-world-size", "2", "--distributed-port", free_port(), "--batch-size", "100")
    command = shlex.join(training(tiny_data, tmp_path / "two", "--max-update", "2", *map(str, flags)))
    job = dedent(f"""
        export PATH={tmp_path}:$PATH SLURM_JOB_NODELIST=localhost SLURM_NNODES=1 SLURM_NTASKS=2
        export SLURM_NTASKS_PER_NODE=2 OMP_NUM_THREADS=1
        SLURM_PROCID=1 SLURM_LOCALID=1 {command} & SLURM_PROCID=0 SLURM_LOCALID=0 {command} && wait $!
    """)
    two = run("bash", "-c", job)
    one = train(*training(tiny_data, tmp_path / "one", "--max-update", "2", "--batch-size", "200"))
    assert losses(two) == pytest.approx(losses(one), abs=2e-3)
    assert_close(weights(tmp_path / "two"), weights(tmp_path / "one"))


def free_port() -> int:
    """A port below those that the system assigns, so that no other process gets it first."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("localhost", port))
            return port
    raise RuntimeError("no port is free")


@pytest.fixture
def train_beside_gpus(tmp_path):
    """fairseq-train on a machine with three GPUs, which PyTorch is made to count here."""
    script = tmp_path / "train_beside_gpus.py"
    script.write_text(
        dedent("""
            import torch

            torch.cuda.device_count = lambda: 3
            from fairseq_cli.train import cli_main

            if __name__ == "__main__":
                cli_main()
        """)
    )
    return script


def test_a_training_on_the_cpu_is_one_process_beside_gpus(tiny_data, tmp_path, train_beside_gpus):
    _, *arguments = training(tiny_data, tmp_path / "out", "--cpu", "--max-update", "1", "--batch-size", "100")
    done = train("python", train_beside_gpus, *arguments)
    assert "training on 1 devices" in done.stdout + done.stderr


@LONG
def test_processes_that_fairseq_spawns_know_the_plugin(tiny_data, tmp_path, train_beside_gpus):
    user_dir = ("--user-dir", ROOT / "lwc_fairseq", "--distributed-world-size", "2")
    _, *arguments = training(tiny_data, tmp_path / "out", *user_dir, "--max-update", "2", "--batch-size", "100")
    done = run("python", train_beside_gpus, *map(str, arguments), cwd=tmp_path, OMP_NUM_THREADS="1")
    assert "training on 2 devices" in done.stdout + done.stderr
    assert len(losses(done)) == 2 and (tmp_path / "out" / "checkpoint_last.pt").exists()


def test_validation_in_two_processes_is_that_in_one(tiny_data, tiny_checkpoint):
    """Of the three batches, one process gets two, and the other one."""
    flags = ("--path", tiny_checkpoint, "--batch-size", "7", "--cpu", "--log-format", "json")
    command = ("fairseq-validate", tiny_data, *TASK, *flags)
    one, two = (run(*processes, *command, OMP_NUM_THREADS="1") for processes in ((), TWO_PROCESSES))
    results = [set(re.findall(r"\| valid \| (\{.*\})", done.stdout + done.stderr)) for done in (one, two)]
    assert len(results[0]) == 1 and results[0] == results[1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(
            ("--bf16", "--distributed-world-size", "2"),
            "--distributed-world-size 2 starts a process for each GPU, and there are 0",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
        (("--ddp-backend", "fully_sharded"), "--ddp-backend fully_sharded needs fairscale"),
        (("--ddp-backend", "slowmo"), "--ddp-backend slowmo needs fairscale"),
        (("--zero-sharding", "os"), "--zero-sharding os needs fairscale"),
    ],
)
def test_refuses_what_cannot_start(tiny_data, tmp_path, flags, message):
    done = run(*training(tiny_data, tmp_path / "out", *flags), check=False)
    assert done.returncode and f"error: {message}" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()
