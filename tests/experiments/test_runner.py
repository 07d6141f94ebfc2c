"""The runner, with shell commands in place of fairseq's."""

import errno
import fcntl
import os
import shlex
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lwc_fairseq.experiments import schedule
from lwc_fairseq.experiments.identity import comment, difference, ran_before
from lwc_fairseq.experiments.jobs import Job
from lwc_fairseq.experiments.layout import RunFolder
from lwc_fairseq.experiments.schedule import Runner, noted_failure, noted_failures
from lwc_fairseq.experiments.table_file import Row


def bash(script: str, *words: object) -> list[str]:
    return ["bash", "-c", script, "bash", *map(str, words)]


def make_job(out: Path, name: str, train: str, generate: str = "echo translated", needs: tuple[str, ...] = ()) -> Job:
    """Scripts run in the job's folder; each leaves its name in the file `ran`."""
    folder = RunFolder(out, name, 1)
    here = f"cd {shlex.quote(str(folder.path))} && echo {{}} >> ran && {{{{ {{}}; }}}}"
    commands = [bash(here.format(step, script)) for step, script in (("train", train), ("generate", generate))]
    return Job(Row(name=name), folder, commands[0], None, commands[1], tuple(RunFolder(out, need, 1) for need in needs))


def ran(job: Job) -> list[str]:
    return (job.folder.path / "ran").read_text().split()


@pytest.mark.parametrize(
    ("visible", "gpus", "parallel", "expected"),
    [
        (None, 0, None, [None]),
        (None, 0, 2, [None, None]),
        (None, 2, None, ["0", "1"]),
        ("3,GPU-4af", 2, None, ["3", "GPU-4af"]),
        ("3,5", 2, 3, ["3", "5", "3"]),
        (None, 4, 1, ["0"]),
    ],
)
def test_jobs_share_the_visible_gpus(monkeypatch, visible, gpus, parallel, expected):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert schedule.devices(parallel) == expected
    assert [schedule.environment(device).get("CUDA_VISIBLE_DEVICES", visible) for device in expected] == [
        visible if device is None else device for device in expected
    ]


def test_finished_steps_are_not_done_again(tmp_path):
    job = make_job(tmp_path, "a", "echo learned")
    assert Runner([None]).run([job]) == {}
    assert (
        job.folder.log("train").read_text() == "learned\n"
        and job.folder.result("generate").read_text() == "translated\n"
    )
    assert Runner([None]).run([job]) == {}
    assert ran(job) == ["train", "generate"]


@pytest.mark.parametrize(("broken", "expected"), [("train", ["train"] * 2), ("generate", ["train", "generate"])])
def test_a_step_that_was_broken_off_is_done_again_and_no_other(tmp_path, broken, expected):
    once = "test -e again || { touch again; echo half; exit 3; }; echo whole"
    job = make_job(tmp_path, "a", **{"train": "true", broken: once})
    assert set(Runner([None]).run([job])) == {job.folder}
    assert not job.folder.result("generate").exists()
    assert Runner([None]).run([job]) == {}
    assert ran(job) == [*expected, "generate"]
    if broken == "generate":
        assert job.folder.result("generate").read_text() == "whole\n"  # nothing of the first attempt


def test_a_failed_row_is_reported_and_the_others_run(tmp_path):
    bad = make_job(tmp_path, "bad", "for i in {1..40}; do echo line $i; done; echo the reason >&2; exit 7")
    after = make_job(tmp_path, "after", "true", needs=("bad",))
    good = make_job(tmp_path, "good", "true")
    failures = Runner([None]).run([bad, after, good])
    assert set(failures) == {bad.folder, after.folder}
    assert "bash ended with status 7" in failures[bad.folder] and "the reason" in failures[bad.folder]
    assert "line 40" in failures[bad.folder] and "line 20" not in failures[bad.folder]
    assert failures[after.folder] == "it needs bad, which failed" and not after.folder.path.exists()
    assert good.folder.result("generate").exists()


@pytest.mark.parametrize("done", [True, False])
def test_other_flags_in_the_same_folder_are_refused(tmp_path, done):
    Runner([None]).run([make_job(tmp_path, "a", "true", "echo translated" if done else "exit 1")])
    job = make_job(tmp_path, "a", "echo otherwise")
    assert "train.command has other flags than this command" in Runner([None]).run([job])[job.folder]
    assert ran(job) == ["train", "generate"]


def test_flags_of_a_generation_that_failed_may_be_mended(tmp_path):
    Runner([None]).run([make_job(tmp_path, "a", "true", "exit 1")])
    job = make_job(tmp_path, "a", "true", "echo mended")
    assert Runner([None]).run([job]) == {}
    assert ran(job) == ["train", "generate", "generate"] and job.folder.result("generate").read_text() == "mended\n"
    other = make_job(tmp_path, "a", "true", "echo other")
    assert "generate.command has other flags" in Runner([None]).run([other])[job.folder]


def test_an_interruption_ends_what_runs_and_nothing_else_begins(tmp_path):
    heeds_ctrl_c = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    jobs = [make_job(tmp_path, name, "touch begun; sleep 60; touch ended", "true") for name in ("a", "b")]
    patience = time.monotonic() + 120

    def interrupt():
        while not any((job.folder.path / "begun").exists() for job in jobs) and time.monotonic() < patience:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            Runner([None]).run(jobs)
    finally:
        signal.signal(signal.SIGINT, heeds_ctrl_c)
    assert not (jobs[0].folder.path / "ended").exists()
    assert ran(jobs[0]) == ["train"] and not jobs[1].folder.path.exists()
    for job in jobs:
        assert not job.folder.result("train").exists() and job.refusal() is None and not job.done


def test_a_row_runs_when_its_trials_have_ended_well(tmp_path):
    jobs, runner = [make_job(tmp_path, name, "true") for name in ("good", "bad")], Runner([None])
    trials = {name: RunFolder(tmp_path, name, 1, trial=1) for name in ("good", "bad")}
    commands = {"good": bash("true"), "bad": bash("exit 3")}
    jobs = [replace(job, trials=(trials[job.row.name],)) for job in jobs]
    assert [job.has_flags for job in jobs] == [False, False]
    runner.run([Job(job.row, trials[job.row.name], commands[job.row.name], None, None) for job in jobs])
    failures = runner.run(jobs)
    assert ran(jobs[0]) == ["train", "generate"] and not jobs[1].folder.path.exists()
    assert list(failures) == [trials["bad"], jobs[1].folder] and failures[jobs[1].folder] == "its trial 1 failed"


def test_a_row_whose_trials_choose_nothing_fails_and_the_others_run(tmp_path):
    jobs = [make_job(tmp_path, name, "true") for name in ("bad", "good")]
    jobs[0] = replace(jobs[0], undecided="no trial has a validation loss")
    for _ in range(2):  # also when the others are finished
        assert Runner([None]).run(jobs) == {jobs[0].folder: "no trial has a validation loss"}
        assert ran(jobs[1]) == ["train", "generate"] and not jobs[0].folder.path.exists()


def test_why_jobs_failed_is_found_later(tmp_path):
    bad = make_job(tmp_path, "bad", "echo the reason >&2; exit 7")
    jobs = [bad, make_job(tmp_path, "after", "true", needs=("bad",)), make_job(tmp_path, "good", "true")]
    assert noted_failures(jobs) == {}
    failures = Runner([None]).run(jobs)
    assert len(failures) == 2 and noted_failures(jobs) == failures
    mended = [make_job(tmp_path, "bad", "true"), *jobs[1:]]
    shutil.rmtree(bad.folder.path)
    assert Runner([None]).run(mended) == {} and noted_failures(mended) == {}


def test_why_a_command_could_not_start_is_found_later(tmp_path):
    job = make_job(tmp_path, "a", "true")
    job.folder.log("train").mkdir(parents=True)
    (reason,) = Runner([None]).run([job]).values()
    assert "Is a directory" in reason and noted_failures([job]) == {job.folder: reason}


def test_an_error_without_a_message_is_a_reason(tmp_path, monkeypatch):
    """It is Python's own, when memory does not suffice."""

    def fail(*_):
        with noted_failure(job.folder):
            raise MemoryError

    job = make_job(tmp_path, "a", "true")
    job.folder.path.mkdir(parents=True)
    monkeypatch.setattr(Runner, "_run_job", fail)
    assert Runner([None]).run([job]) == noted_failures([job]) == {job.folder: "MemoryError"}


@pytest.mark.parametrize(("key", "name"), [("machines", "hardware"), ("versions", "versions")])
def test_what_a_step_ran_on_is_noted(tmp_path, monkeypatch, key, name):
    """A training that was stopped went on elsewhere."""
    job = make_job(tmp_path, "a", "test -e again || { touch again; exit 3; }")
    for value in ("8 × A", "2 × B"):
        monkeypatch.setattr(schedule, name, lambda value=value: value)
        Runner([None]).run([job])
    noted = {step: ran_before(job.folder.command(step).read_text(), key) for step in job.steps()}
    assert noted == {"train": ["8 × A", "2 × B"], "generate": ["2 × B"]}


def test_jobs_begin_in_their_order(tmp_path):
    here = shlex.quote(str(tmp_path))
    names = [str(number) for number in range(20)]
    jobs = [make_job(tmp_path, name, f"echo {name} >> {here}/begun") for name in names]
    assert Runner([None]).run(jobs) == {}
    assert (tmp_path / "begun").read_text().split() == names


def test_a_row_that_waits_for_another_keeps_no_device(tmp_path):
    """`a` ends when `d` has begun. `b`, between them, waits for `a`, and `c` for `b`."""
    here = shlex.quote(str(tmp_path))
    wait = f"timeout 120 bash -c 'until test -e {here}/met; do sleep 0.1; done'"
    jobs = [
        make_job(tmp_path, "a", wait),
        make_job(tmp_path, "b", "true", needs=("a",)),
        make_job(tmp_path, "c", "true", needs=("b",)),
        make_job(tmp_path, "d", f"touch {here}/met"),
    ]
    assert Runner([None, None]).run(jobs) == {}


def test_a_row_whose_needs_were_trained_again_is_refused(tmp_path):
    jobs = [make_job(tmp_path, "a", "true"), make_job(tmp_path, "b", "true", needs=("a",))]
    assert Runner([None]).run(jobs) == {} and Runner([None]).run(jobs) == {}
    shutil.rmtree(jobs[0].folder.path)
    failures = Runner([None]).run(jobs)
    expected = f"{jobs[1].folder.path} was made with earlier models of the rows that it uses (a): remove"
    assert list(failures) == [jobs[1].folder] and failures[jobs[1].folder].startswith(expected)
    assert ran(jobs[1]) == ["train", "generate"] and jobs[1].refusal().startswith(expected)
    shutil.rmtree(jobs[1].folder.path)
    assert Runner([None]).run(jobs) == {}


@pytest.mark.parametrize(
    ("user_dirs", "same"),
    [
        ("/new/lwc_fairseq:/home/mine", True),
        ("/new/lwc_fairseq:/moved/mine", True),
        ("/old/lwc_fairseq:/home/other", False),
        ("/old/lwc_fairseq", False),
    ],
)
def test_packages_may_be_moved_but_not_exchanged(user_dirs, same):
    command = ["fairseq-train", "data", "--user-dir", "/old/lwc_fairseq:/home/mine", "--lr", "1"]
    now = ["fairseq-train", "data", "--user-dir", user_dirs, "--lr", "1"]
    table = Path("out")
    recorded = f"{shlex.join(command)}\n{comment(command, table)}"
    assert (difference(recorded, now, table) is None) == same
    assert difference(recorded, [*now[:-1], "2"], table)


@pytest.mark.parametrize(
    ("flags", "same"),
    [
        ("fairseq-train DATA --reverse-context reference", True),
        ("fairseq-train DATA --reverse-context translations", False),
        ("fairseq-generate DATA --gen-subset train", True),
        ("fairseq-generate DATA --gen-subset train --reverse-from-data", False),
    ],
)
def test_reverse_translations_belong_to_the_data_that_some_commands_read(tmp_path, flags, same):
    (tmp_path / "reverse").mkdir()
    for name in ("train.de-en.de.idx", "reverse/train.de-en.idx", "reverse/train.de-en.json"):
        (tmp_path / name).write_text("one")
    command = flags.replace("DATA", str(tmp_path)).split()
    recorded = f"{shlex.join(command)}\n{comment(command, Path('out'))}"
    (tmp_path / "reverse" / "train.de-en.json").write_text("another")
    assert difference(recorded, command, Path("out")) is None
    (tmp_path / "reverse" / "train.de-en.idx").write_text("another")
    assert (difference(recorded, command, Path("out")) is None) == same


def test_a_folder_that_another_process_works_in_is_left_alone(tmp_path):
    job = make_job(tmp_path, "a", "true")
    job.folder.path.mkdir(parents=True)
    with job.folder.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print("process 12345", file=lock, flush=True)
        assert "process 12345 is at work" in Runner([None]).run([job])[job.folder]
    assert Runner([None]).run([job]) == {}


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    job = make_job(tmp_path, "a", "true")
    reason = f"{job.folder.lock}: Function not implemented: this file system has no locks"
    assert reason in Runner([None]).run([job])[job.folder]


def test_what_another_table_did_before_the_lock_is_seen(tmp_path, monkeypatch):
    """Between its first look and the lock, another table trains in the folder, with other flags and with the same."""
    lock = schedule.locked
    for name, train, expected in (("a", "echo other", "has other flags than this command"), ("b", "true", None)):
        other, job = make_job(tmp_path, name, train), make_job(tmp_path, name, "true")

        def wait_for_the_other(folder, other=other):
            monkeypatch.setattr(schedule, "locked", lock)
            assert Runner([None]).run([other]) == {}
            return lock(folder)

        monkeypatch.setattr(schedule, "locked", wait_for_the_other)
        failures = Runner([None]).run([job])
        assert (expected in failures[job.folder]) if expected else (failures == {})
        assert ran(job) == ["train", "generate"]


def test_jobs_run_side_by_side_each_on_its_device(tmp_path):
    """Each waits for the other to have begun."""
    here = shlex.quote(str(tmp_path))
    wait = f"touch {here}/$CUDA_VISIBLE_DEVICES; timeout 120 bash -c 'until test -e {here}/%s; do sleep 0.1; done'"
    jobs = [make_job(tmp_path, name, wait % other) for name, other in (("a", "8"), ("b", "7"))]
    failures = Runner(["7", "8"]).run(jobs)
    assert failures == {}


def test_commands_survive_the_signals_of_a_cluster(tmp_path):
    job = make_job(tmp_path, "a", "kill -USR1 $$; kill -USR2 $$; echo lived")
    assert Runner([None]).run([job]) == {}
    assert job.folder.log("train").read_text() == "lived\n"


def test_a_job_may_run_without_those_that_it_needs(tmp_path):
    """On a cluster, they are other jobs, which have ended."""
    assert Runner([None]).run([make_job(tmp_path, "b", "true", needs=("a",))]) == {}
