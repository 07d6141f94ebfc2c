"""Training that is killed, told to end or out of disk loses nothing that it had saved."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from conftest import (
    FAMILIES,
    FRONT_DOOR,
    LONG,
    ROOT,
    TASK,
    TINY_TRAINING,
    TWO_PROCESSES,
    assert_resumed,
    assert_same_end,
    heed_interrupt,
    run,
    run_python,
    saved_updates,
)

UPDATES = 20
EACH_UPDATE_SAVED = ("--save-interval-updates", "1", "--keep-interval-updates", "2", "--disable-validation")
START_LIMIT_S = 120


def training(data, out, family="lwc", updates=UPDATES, *flags) -> list[str]:
    order = ("--batch-size", "20", "--required-batch-size-multiple", "1", "--max-update", updates, "--dropout", "0.2")
    command = ("fairseq-train", data, *TASK, *TINY_TRAINING, *FAMILIES[family], *order, "--save-dir", out, *flags)
    return [str(part) for part in command]


class Started:
    """A command that runs, and whose log is read while it does."""

    def __init__(self, command, log, **environment):
        self.log = log
        with log.open("w") as out:
            files = {"stdout": out, "stderr": out}
            settings = {"cwd": ROOT, "env": {**FRONT_DOOR.environment, **environment}, "start_new_session": True}
            self.process = subprocess.Popen(command, **files, **settings, preexec_fn=heed_interrupt)

    def wait_for(self, text: str) -> None:
        self.wait_until(lambda: text in self.log.read_text())

    def wait_until(self, happened: Callable[[], bool]) -> None:
        limit = time.monotonic() + START_LIMIT_S
        while not happened():
            assert self.process.poll() is None and time.monotonic() < limit, self.log.read_text()[-3000:]
            time.sleep(0.01)

    def signal(self, number: int) -> list[int]:
        """Send a signal to the command and to all processes that it has started, as a scheduler does."""
        processes = descendants(self.process.pid)
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        return processes

    def end(self, number: int) -> int:
        self.signal(number)
        return self.process.wait(timeout=START_LIMIT_S)


def descendants(process: int) -> list[int]:
    """The ids of a process and of all processes that it has started, directly or not."""
    children = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += map(int, path.read_text().split())
    return [process, *(found for child in children for found in descendants(child))]


@pytest.fixture(scope="module")
def undisturbed(tiny_data, tmp_path_factory):
    folders = {}

    def make(family, updates=UPDATES):
        if (family, updates) not in folders:
            folder = folders[family, updates] = tmp_path_factory.mktemp("undisturbed")
            run(*training(tiny_data, folder, family, updates, *EACH_UPDATE_SAVED))
        return folders[family, updates]

    return make


def saves(out: Path, update: int) -> bool:
    """Whether the checkpoint of this update or of a later one is there, or is being written."""
    names = (path.name for path in out.glob("checkpoint_*_*.pt*"))  # such as checkpoint_1_12.pt.tmp
    return any(int(name.split("_")[2].split(".")[0]) >= update for name in names)


@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=LONG)])
def test_killed_at_any_moment_it_goes_on_to_the_same_end(tiny_data, tmp_path, undisturbed, kills, record_property):
    draw, updates, while_writing = random.Random(kills), [], 0
    total = UPDATES if kills == 1 else 3 * UPDATES
    for i in range(kills):
        family = list(FAMILIES)[i % len(FAMILIES)]
        expected, out = undisturbed(family, total), tmp_path / "out"
        command = training(tiny_data, out, family, total, *EACH_UPDATE_SAVED)
        started = Started(command, tmp_path / "log")
        started.wait_for("begin training epoch 1")
        if kills == 1:
            started.wait_until((out / "checkpoint_last.pt").exists)
        else:
            started.wait_until(partial(saves, out, draw.randrange(1, total)))
        started.end(signal.SIGKILL)
        left = [path.name for path in out.glob("*")] if out.exists() else []
        while_writing += any(name.endswith((".tmp", ".making")) for name in left)
        if "checkpoint_last.pt" in left:
            updates.append(saved_updates(out / "checkpoint_last.pt"))
        resumed = run(*command)
        if "checkpoint_last.pt" in left:
            assert_resumed(resumed, updates[-1])
        assert_same_end(out, expected)
        shutil.rmtree(out)
    record_property("kills", kills)
    record_property("kills while a file was being written", while_writing)
    record_property("updates that were saved at the kill", updates)
    assert kills < 10 or (while_writing and len(set(updates)) > 5)


HOLDS_A_BATCH = dedent("""
    import os
    import time

    from fairseq.data import LanguagePairDataset
    from fairseq.data.iterators import FrozenBatchSampler
    from fairseq_cli.train import cli_main

    collater, make_batches, held = LanguagePairDataset.collater, FrozenBatchSampler.make_batches_for_epoch, set()

    def make_batches_and_hold_the_third(self, *args):
        make_batches(self, *args)
        held.add(self.batches[2][0])

    def collate_when_allowed(self, samples, *args):
        while held & {sample["id"] for sample in samples} and not os.path.exists(os.environ["GO"]):
            time.sleep(0.01)
        return collater(self, samples, *args)

    LanguagePairDataset.collater = collate_when_allowed
    FrozenBatchSampler.make_batches_for_epoch = make_batches_and_hold_the_third
    if __name__ == "__main__":
        cli_main()
""")


SHORT_CASES = [("lwc", 2, 2, signal.SIGTERM), ("lwc", 1, 1, signal.SIGINT)]
LONG_CASES = [
    *(("lwc", *case, signal.SIGTERM) for case in ((0, 1), (2, 1), (0, 2), (1, 2))),
    *((family, 1, 1, signal.SIGTERM) for family in FAMILIES),
    *(("lwc", *case, signal.SIGINT) for case in ((0, 1), (2, 1))),
]


@pytest.mark.parametrize(
    ("family", "workers", "processes", "number"),
    [*SHORT_CASES, *(pytest.param(*case, marks=LONG) for case in LONG_CASES)],
)
def test_told_to_end_it_saves(tiny_data, tmp_path, undisturbed, family, workers, processes, number):
    """In an epoch, in which nothing else would save, and while it waits for a batch.

    The signal reaches the processes that read data, too, one of which has the batch in hand.
    """
    script, go, out = tmp_path / "train_and_wait.py", tmp_path / "go", tmp_path / "out"
    script.write_text(HOLDS_A_BATCH)
    flags = ("--validate-interval", "99", "--save-interval", "99", "--num-workers", str(workers))
    command = training(tiny_data, out, family, UPDATES, *flags, "--log-interval", "1")
    launcher = TWO_PROCESSES if processes == 2 else ()
    started = Started([*launcher, "python", str(script), *command[1:]], tmp_path / "log", GO=str(go))
    started.wait_for("train_inner | epoch 001:      2 ")
    signalled = started.signal(number)
    assert len(signalled) >= 1 + processes * workers
    go.touch()
    status = started.process.wait(timeout=START_LIMIT_S)
    log = (tmp_path / "log").read_text()
    assert "terminated after update 3; the same command goes on there" in log
    assert saved_updates(out / "checkpoint_last.pt") == 3
    assert not [process for process in signalled if is_alive(process)]
    if processes == 2:
        assert status
        return
    assert status == 128 + number and "Traceback" not in log
    assert ("saving after the next update; Ctrl-C again ends at once" in log) == (number == signal.SIGINT)
    assert_resumed(run(*command), 3)
    assert_same_end(out, undisturbed(family))


HOLDS_VALIDATION = dedent("""
    import os
    import time
    from pathlib import Path

    from fairseq.tasks.fairseq_task import FairseqTask
    from fairseq_cli.train import cli_main

    step, go, steps = FairseqTask.valid_step, os.environ["GO"], []

    def step_when_allowed(*args, **kwargs):
        steps.append(None)
        Path(f"{go}.waits").touch()
        while not os.path.exists(f"{go}.{len(steps)}"):
            time.sleep(0.01)
        return step(*args, **kwargs)

    FairseqTask.valid_step = step_when_allowed
    if __name__ == "__main__":
        cli_main()
""")


def test_told_to_end_during_validation_it_saves_at_once(tiny_data, tmp_path, undisturbed):
    """The validation of the first epoch, of ten updates, is held after its first batch, and then killed."""
    script, go, out = tmp_path / "train_and_wait.py", tmp_path / "go", tmp_path / "out"
    script.write_text(HOLDS_VALIDATION)
    command = training(tiny_data, out, "lwc", UPDATES, "--batch-size-valid", "5")
    started = Started(["python", str(script), *command[1:]], tmp_path / "log", GO=str(go))
    started.wait_until((tmp_path / "go.waits").exists)
    started.signal(signal.SIGTERM)
    assert not (out / "checkpoint_last.pt").exists()
    (tmp_path / "go.1").touch()
    started.wait_until((out / "checkpoint_last.pt").exists)
    started.end(signal.SIGKILL)
    assert_resumed(run(*command), 10)
    assert_same_end(out, undisturbed("lwc"))


@LONG
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--batch-size", "999", "--max-tokens", "9999"), id="one update an epoch"),
        pytest.param(("--validate-interval-updates", "1"), id="validated each time"),
    ],
)
def test_told_to_end_where_each_update_is_validated(tiny_data, tmp_path, flags):
    """It does not wait for an update that fairseq does not follow by something else: there is none."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    command = training(tiny_data, out, "lwc", 15, *flags)
    started = Started(command, tmp_path / "log")
    started.wait_for('begin validation on "valid" subset')
    assert started.end(signal.SIGTERM) == 128 + signal.SIGTERM
    assert "the same command goes on there" in (tmp_path / "log").read_text()
    saved = saved_updates(out / "checkpoint_last.pt")
    assert_resumed(run(*command), saved)
    run(*training(tiny_data, whole, "lwc", 15, *flags))
    assert_same_end(out, whole)


@LONG
def test_told_to_end_without_checkpoints_it_says_so(tiny_data, tmp_path):
    started = Started(training(tiny_data, tmp_path / "out", "lwc", 2000, "--no-save"), tmp_path / "log")
    started.wait_for("Start iterating over samples")
    assert started.end(signal.SIGTERM) == 128 + signal.SIGTERM
    assert re.search(r"terminated after update \d+; there is no checkpoint_last.pt", (tmp_path / "log").read_text())


def is_alive(process: int) -> bool:
    """Whether a process runs. A zombie does not."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


SPAWNS_TWO = dedent("""
    import torch
    from fairseq_cli.train import cli_main

    torch.cuda.device_count = lambda: 3
    if __name__ == "__main__":
        cli_main()
""")


@LONG
@pytest.mark.parametrize(
    ("launcher", "number"), [("torchrun", signal.SIGTERM), ("fairseq", signal.SIGTERM), ("fairseq", signal.SIGINT)]
)
def test_several_processes_that_are_told_to_end_save_together(tiny_data, tmp_path, launcher, number):
    (tmp_path / "train_on_two.py").write_text(SPAWNS_TWO)
    _, *arguments = training(tiny_data, tmp_path / "out", "lwc", 2000, "--log-interval", "1")
    commands = {
        "torchrun": [*TWO_PROCESSES, "fairseq-train", *arguments],
        "fairseq": ["python", str(tmp_path / "train_on_two.py"), *arguments, "--distributed-world-size", "2"],
    }
    started = Started(commands[launcher], tmp_path / "log")
    started.wait_for("train_inner | epoch 001:      2 ")
    assert started.end(number) != 0
    log = (tmp_path / "log").read_text()
    assert "training on 2 devices" in log
    number = int(re.search(r"terminated after update (\d+); the same command goes on there", log)[1])
    assert saved_updates(tmp_path / "out" / "checkpoint_last.pt") == number < 2000


WOULD_SPAWN_TWO = dedent("""
    import signal

    import torch
    from fairseq_cli.train import cli_main

    from lwc_fairseq_compat.processes import pass_signal_on

    def spawn(fn, args, nprocs, join):
        print(nprocs, signal.getsignal(signal.SIGTERM) is pass_signal_on)

    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 2
    torch.multiprocessing.spawn = spawn
    cli_main()
""")


@pytest.mark.parametrize("precision", ["--fp16", "--bf16"])
def test_signals_are_passed_on_to_processes_on_gpus(tiny_data, tmp_path, precision):
    """Without GPUs: no process is started. fairseq takes --bf16 for the sign of a TPU."""
    _, *arguments = training(tiny_data, tmp_path / "out", "lwc", 2, precision)
    arguments.remove("--cpu")
    done = run_python("-c", WOULD_SPAWN_TWO, *arguments, "--distributed-world-size", "2")
    assert done.stdout.splitlines()[-1] == "2 True"


HOLDS_AN_UPDATE = dedent("""
    import os
    import time
    from pathlib import Path

    from fairseq.tasks.fairseq_task import FairseqTask
    from fairseq_cli.train import cli_main
    from lwc_fairseq_compat import processes

    step, go = FairseqTask.train_step, Path(os.environ["GO"])
    processes.SAME_REQUEST_S = float(os.environ["SAME_REQUEST_S"])

    def step_when_allowed(*args, **kwargs):
        while not go.exists():
            go.with_name("waits").touch()
            time.sleep(0.01)
        return step(*args, **kwargs)

    FairseqTask.train_step = step_when_allowed
    if __name__ == "__main__":
        cli_main()
""")


@LONG
@pytest.mark.parametrize("same_request_s", ["inf", "0"], ids=["one order", "two orders"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_twice(tiny_data, tmp_path, number, same_request_s):
    """A signal that comes from a scheduler and from the parent counts once; a second order ends the process at once."""
    script, go, waits = tmp_path / "train_and_wait.py", tmp_path / "go", tmp_path / "waits"
    script.write_text(HOLDS_AN_UPDATE)
    _, *arguments = training(tiny_data, tmp_path / "out", "lwc", 2000)
    started = Started(["python", str(script), *arguments], tmp_path / "log", GO=str(go), SAME_REQUEST_S=same_request_s)

    def until_it_waits():
        """What came before has then been handled, since signals are handled where the update is held."""
        for _ in range(2):
            waits.unlink(missing_ok=True)
            started.wait_until(waits.exists)

    until_it_waits()
    started.signal(number)
    until_it_waits()
    started.signal(number)
    if same_request_s == "inf":
        until_it_waits()
        go.touch()
    status = started.process.wait(timeout=START_LIMIT_S)
    saved = (tmp_path / "out" / "checkpoint_last.pt").exists()
    assert (status, saved) == ((128 + number, True) if same_request_s == "inf" else (-number, False))


def test_a_full_disk(tiny_data, tmp_path):
    """A file system in memory, in a name space of its own, with room for two or three checkpoints."""
    out = tmp_path / "disk"
    out.mkdir()
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no name spaces of its own for a user here")
    every = ("--save-interval-updates", "1", "--disable-validation", "--max-update", "20")
    train = " ".join(training(tiny_data, out, "lwc", 20, *every))
    script = dedent(f"""
        mount -t tmpfs -o size=1300k tmpfs {out}
        {train} && exit 9
        ls {out} > {tmp_path}/full
        mount -o remount,size=100m {out}
        {train} || exit 7
        ls {out} > {tmp_path}/end
    """)
    done = run("unshare", "-rm", "bash", "-c", script, OMP_NUM_THREADS="1")
    assert re.search(r"Loaded checkpoint .* @ \d+ updates\)", done.stdout + done.stderr)
    failed = next(line for line in done.stderr.splitlines() if line.startswith("fairseq-train: error: "))
    assert f"cannot write checkpoint {out}/checkpoint" in failed and "MiB are free there" in failed
    assert "Traceback" not in done.stderr
    full, end = ((tmp_path / name).read_text().split() for name in ("full", "end"))
    assert {"checkpoint_1_1.pt", "checkpoint_last.pt"} <= set(full) and "checkpoint_2_19.pt" in end
    assert not any(name.endswith((".tmp", ".making")) for name in full + end)
