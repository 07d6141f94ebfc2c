"""`lwc-fairseq watch` beside the runner, with shell commands in place of fairseq's, and on logs of fairseq-train."""

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from dataclasses import replace
from functools import partial

import pytest
from test_runner import make_job

from conftest import FRONT_DOOR, LONG, TINY_LWC, TINY_TRAINING, refusal, run
from lwc_fairseq import cli
from lwc_fairseq.experiments.layout import RunFolder
from lwc_fairseq.experiments.schedule import Runner
from lwc_fairseq.experiments.states import DONE, RUNNING, WAITING, Run, write_plan
from lwc_fairseq.experiments.training_log import Losses, read_position

pytest.importorskip("plotille")

SETTINGS = "2026-11-27 10:00:00 | INFO | fairseq_cli.train | {'_name': None, 'max_epoch': 0, 'max_update': 100}"


def step(second: int, updates: int) -> str:
    what = f'{{"epoch": 1, "update": 0.{updates}, "loss": "9", "num_updates": "{updates}", "wall": "1"}}'
    return f"2026-11-27 10:{second // 60:02}:{second % 60:02} | INFO | train_inner | {what}"


def valid(updates: int, loss: float | str, **more: float) -> str:
    values = {f"valid_{name}": str(value) for name, value in {"loss": loss, **more, "num_updates": updates}.items()}
    return f"2026-11-27 10:00:00 | INFO | valid | {json.dumps({'epoch': 1, **values})}"


def echo(*lines: str) -> str:
    return "; ".join(f"echo '{line}'" for line in (line.replace("'", "'\\''") for line in lines))


@pytest.fixture
def watch(capsys, monkeypatch):
    """What the command prints where there is no terminal. It runs in this process."""

    def print_once(path, columns: int = 80) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        args = cli.parser().parse_args(["watch", str(path)])
        assert args.call(args) == 0
        return capsys.readouterr().out

    return print_once


def line_of(name: str, frame: str) -> list[str]:
    """The words after the name of a run."""
    (line,) = [line for line in frame.splitlines() if line[1:].startswith(f" {name} ")]
    return line.split(name)[1].split()


class Terminal:
    """A command in a terminal of 80 × 24, and all that it has written."""

    def __init__(self, *command, **environment):
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        environment = {**FRONT_DOOR.environment, "TERM": "xterm", **environment}
        heed_ctrl_c = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests in the background ignore it
        streams = {"stdin": side, "stdout": side, "stderr": side}
        self.process = subprocess.Popen([*map(str, command)], env=environment, preexec_fn=heed_ctrl_c, **streams)
        os.close(side)
        self.main, self.bytes = main, b""

    @property
    def written(self) -> str:
        return self.bytes.decode(errors="replace")

    def read_until(self, expected: str) -> None:
        """Read until the text of a frame, without its colors, has what is expected."""
        limit = time.monotonic() + 60
        while expected not in re.sub(r"\x1b\[\d*m", "", self.written):
            assert time.monotonic() < limit, self.written
            assert self.more(), self.written

    def read_to_the_end(self) -> int:
        while self.more():
            pass
        return self.process.wait()

    def more(self) -> bool:
        """Read what there is. Returns whether the command has not ended."""
        try:
            self.bytes += os.read(self.main, 2**16)
        except OSError:
            return False
        return True


def test_a_table_that_runs(tmp_path):
    wait = "timeout 60 bash -c 'until test -e {}; do sleep 0.1; done'"
    begin = echo(SETTINGS, step(0, 20), valid(20, 8.5), step(30, 40))
    script = f"{begin}\n{wait.format('go')}; {echo(valid(50, 6.25), step(60, 60))}; {wait.format('end')}"
    jobs = [make_job(tmp_path, "first", script), make_job(tmp_path, "second", "true", needs=("first",))]
    first = jobs[0].folder.path
    write_plan(tmp_path, jobs)
    failures = []
    table = threading.Thread(target=lambda: failures.append(Runner([None]).run(jobs)))
    terminal = Terminal("lwc-fairseq", "watch", tmp_path)
    terminal.read_until("2 waiting")
    table.start()
    terminal.read_until("a first, seed 1   running        40      8.500  training, 40%, 90 s left")
    assert "1 running, 1 waiting" in terminal.written
    for path in (*first.iterdir(), first):
        os.utime(path, (0, 0))  # its process says that it runs, not the time of its files
    terminal.bytes = b""
    terminal.read_until("a first, seed 1   running        40")
    (first / "go").touch()
    terminal.read_until("a first, seed 1   running        60      6.250  training, 60%, 60 s left")
    (first / "end").touch()
    assert terminal.read_to_the_end() == 0
    table.join()
    assert failures == [{}]
    last = terminal.written.rpartition("\x1b[?1049l")[2]  # after the first screen has returned
    assert ": 2 done (" in last and len(last.splitlines()) < 24
    assert "\x1b[36ma\x1b[0m first, seed 1" in last and "\x1b[36m" in last.partition("validation loss")[2]


def test_ctrl_c_ends_it_and_restores_the_terminal(tmp_path):
    terminal = Terminal("lwc-fairseq", "watch", tmp_path, NO_COLOR="1")
    terminal.read_until("no run has begun")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.read_to_the_end() == 0
    assert terminal.written.count("\x1b[?1049h") == terminal.written.count("\x1b[?1049l") == 1
    assert not re.search(r"\x1b\[\d+m", terminal.written) and "Traceback" not in terminal.written


def test_what_failed_and_what_it_stops(watch, tmp_path):
    mend = "test -e mended || { echo cause of it; exit 7; }"
    bad, after = make_job(tmp_path, "bad", mend), make_job(tmp_path, "after", "true", needs=("bad",))
    write_plan(tmp_path, [bad, after])
    Runner([None]).run([bad, after])
    frame = watch(tmp_path)
    assert f"{tmp_path}"[-20:] in frame and ": 2 failed (" in frame and "\x1b" not in frame
    assert frame.splitlines()[2:] == [
        "a bad, seed 1    failed",
        "    cause of it",
        "b after, seed 1  failed",
        "    it needs bad, which failed",
    ]
    (bad.folder.path / "mended").touch()
    Runner([None]).run([bad, after])
    assert ": 2 done (" in watch(tmp_path) and not bad.folder.failure.exists()


def test_trials_without_a_loss_choose_no_flags(watch, tmp_path):
    trials = tuple(RunFolder(tmp_path, "a", seed=1, trial=number) for number in (1, 2))
    job = replace(make_job(tmp_path, "a", "true"), trials=trials)
    write_plan(tmp_path, [*(replace(job, folder=trial, generate=None, trials=()) for trial in trials), job])
    losses = dict(zip(trials, ("inf", "2.5"), strict=True))
    for trial in trials:
        trial.path.mkdir(parents=True)
        trial.log("train").write_text(f"{SETTINGS}\n{valid(10, losses[trial])}\n")
        trial.result("train").touch()
    assert line_of("a, seed 1", watch(tmp_path)) == ["waiting"]
    trials[1].log("train").write_text(f"{SETTINGS}\n{valid(10, 'nan')}\n")
    frame = watch(tmp_path)
    assert line_of("a, seed 1", frame) == ["failed"] and "    no trial has a validation loss" in frame.splitlines()


@pytest.mark.parametrize(
    ("host", "silence", "expected"),
    [
        (socket.gethostname(), 60, "stopped while training"),
        (socket.gethostname(), -60, "running training"),  # between two steps, however slow the test is
        ("elsewhere", 60, "running training"),
        ("elsewhere", 1500, "silent while training, for 25 min"),
    ],
)
def test_a_run_without_a_process_here(watch, tmp_path, host, silence, expected):
    """Process 1 is another one than that of the run."""
    folder = make_job(tmp_path, "a", "true").folder
    folder.path.mkdir(parents=True)
    folder.lock.write_text(f"process 1 on {host}\n")
    folder.command("train").write_text("fairseq-train data\n")
    for path in (folder.lock, folder.command("train"), folder.path):
        os.utime(path, (time.time() - silence,) * 2)
    assert " ".join(line_of("a, seed 1", watch(tmp_path))) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("echo '7 PENDING (Priority)'", "waiting job 7: PENDING (Priority)"),
        ("echo '7 RUNNING (None)'", "running training, job 7: RUNNING"),
        ("echo '7 CANCELLED (None)'", "stopped while training, job 7: CANCELLED"),
        ("exit 0", "stopped while training, job 7: has ended"),
        ("exit 1", "running training, job 7: no answer"),
        (None, "running training"),  # its log has just grown
    ],
)
def test_a_job_of_slurm(watch, tmp_path, monkeypatch, answer, expected):
    folder = make_job(tmp_path, "a", "true").folder
    folder.path.mkdir(parents=True)
    folder.job.write_text(json.dumps({"place": "slurm", "number": "7", "after": [], "asked": [], "commands": {}}))
    folder.lock.write_text("process 1 on a-node\n")
    folder.command("train").write_text("fairseq-train data\n")
    squeue = tmp_path / "bin" / "squeue"
    squeue.parent.mkdir()
    if answer:
        squeue.write_text(f"#!/bin/sh\n{answer}\n")
        squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(squeue.parent))
    assert " ".join(line_of("a, seed 1", watch(tmp_path))) == expected


@pytest.mark.parametrize("form", ["simple", pytest.param("json", marks=LONG)])
def test_a_training_by_itself(watch, tiny_data, tmp_path, form):
    folder = tmp_path / "mine"
    flags = ["--log-format", form, "--log-interval", "5", "--max-update", "12", "--save-dir", folder]
    done = run("fairseq-train", tiny_data, "--task", "concat_translation", *TINY_LWC, *TINY_TRAINING, *flags)
    assert refusal("watch", folder).startswith(f"{folder}: it has checkpoints, but no log: append `> ")
    log = folder / "train.log"
    log.write_text(done.stdout + done.stderr)
    state, updates, loss = line_of("mine", watch(folder))
    losses = re.findall(r'valid_loss": "([\d.]+)|subset \| loss ([\d.]+)', log.read_text())
    assert (state, updates) == ("done", "12") and float(loss) in [float(value or other) for value, other in losses]
    assert read_position(log).updates == 10 and read_position(log).share == pytest.approx(10 / 12)
    log.write_text("\n".join(log.read_text().splitlines()[:-3]))
    assert line_of("train.log", watch(log))[:2] == ["running", "12"]
    with log.open("a") as lines:
        print("\nTraceback (most recent call last):\n  somewhere\nRuntimeError: no memory", file=lines)
    assert "    RuntimeError: no memory" in watch(log).splitlines()


def test_a_resumed_training_starts_where_it_stopped(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("\n".join([SETTINGS, step(0, 10), step(600, 20), SETTINGS, step(700, 40), step(710, 60), ""]))
    assert read_position(log).left_s == pytest.approx(20)


def test_bleu_of_the_validation_set(watch, tmp_path):
    log = tmp_path / "train.log"
    lines = [valid(10, 5.5, bleu=20.5), valid(20, 5.25, bleu=30.25), valid(30, "nan", bleu=9)]
    log.write_text("\n".join([SETTINGS, *lines]))
    wide, narrow = (watch(log, columns=columns).splitlines() for columns in (80, 40))
    assert wide[2].split()[:6] == ["a", "train.log", "running", "30", "5.250", "30.2"]
    assert "validation loss" in wide[3] and "validation BLEU" in wide[3]
    assert ["validation" in line for line in narrow].count(True) == 2
    assert max(map(len, wide)) <= 80 and max(map(len, narrow)) <= 40


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 24), (200, 60)])
def test_what_runs_is_shown_first_if_there_is_little_room(width, height):
    from lwc_fairseq.experiments.frame import make_frame

    losses = Losses(valid={10: 5.0, 20: 1e20, 30: 4.0})
    states = [DONE] * 30 + [RUNNING] + [WAITING] * 3
    runs = [Run(f"row{i}, seed 1", state, losses=losses) for i, state in enumerate(states)]
    frame = make_frame("x" * 300, runs, width, height).splitlines()
    assert len(frame) < height and max(map(len, frame)) <= width
    assert any("row30, seed 1" in line for line in frame) and ": 1 running, 3 waiting, " in frame[0]
    everything = make_frame("x", runs, width)
    assert all(run.name in everything for run in runs)


def test_a_terminal_that_is_narrower_than_a_list():
    from lwc_fairseq.experiments.frame import make_frame

    runs = [Run("row, seed 1", RUNNING, losses=Losses(valid={10: 5.0, 20: 4.0}, bleu={10: 1.0}))]
    assert "ro…  running" in make_frame("x", runs, 5, 24)


@pytest.mark.parametrize("width", [50, 60, 70, 80, 100])
def test_names_of_runs_stay_whole_before_numbers_of_updates(width):
    from lwc_fairseq.experiments.frame import make_frame

    losses = Losses(valid={10: 5.0}, bleu={10: 1.0})
    runs = [Run(f"rnnsearch, seed {i}", RUNNING, losses=losses) for i in (1, 2)]
    frame = make_frame("x", runs, width)
    assert all(run.name in frame for run in runs) and ("updates  best" in frame) == (width >= 80)


def test_folders_that_are_none_of_a_table(watch, tmp_path, monkeypatch):
    assert re.search(r": no run has begun \(\S{8}\)\n$", watch(tmp_path))
    message = refusal("watch", tmp_path / "nowhere")
    assert message.startswith(f"{tmp_path / 'nowhere'}: no such folder; give that of a table")
    (tmp_path / "text").mkdir()
    assert "not the folder of a table (no ROW/seed1), nor that of a training" in refusal("watch", tmp_path)
    (tmp_path / "other.log").write_text("no training\n")
    assert refusal("watch", tmp_path / "other.log") == f"{tmp_path / 'other.log'}: not a log of fairseq-train"
    monkeypatch.delitem(sys.modules, "lwc_fairseq.experiments.frame", raising=False)
    monkeypatch.setitem(sys.modules, "plotille", None)
    assert refusal("watch", tmp_path) == "watch needs plotille: pip install '.[watch]'"
