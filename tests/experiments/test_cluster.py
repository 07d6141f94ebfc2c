"""The jobs of a table on a cluster, with shell commands in place of fairseq's. In most tests, SLURM's are scripts."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_runner import make_job, ran

from conftest import LONG, ROOT, heed_interrupt, refusal, run
from lwc_fairseq.experiments import cluster
from lwc_fairseq.experiments.cluster import ClusterRunner, NodeTask, cancel_all
from lwc_fairseq.experiments.identity import hardware
from lwc_fairseq.experiments.jobs import Job, JobFailed
from lwc_fairseq.experiments.queue import LOCAL, SLURM
from lwc_fairseq_compat import UserError

pytest.importorskip("submitit")

COMMANDS = {
    "sbatch": """
        test ! -e refuse || { echo "sbatch: error: invalid partition specified" >&2; exit 1; }
        number=$(($(cat count) + 1)); echo $number > count; cp "$1" $number.sh
        echo "$number PENDING (Priority)" > $number.state; echo "Submitted batch job $number" """,
    "squeue": """
        test ! -e silent || { echo "Socket timed out" >&2; exit 1; }
        for last; do :; done; numbers=${last#--jobs=}
        for number in ${numbers//,/ }; do test ! -e $number.state || cat $number.state; done """,
    "scancel": """
        test ! -e refuse || { echo "scancel: error: Access/permission denied" >&2; exit 1; }
        echo "$1 CANCELLED (None)" > $1.state """,
    "srun": "exit 1",
}


class Slurm:
    """A folder in which the commands of SLURM are scripts. The test says what becomes of the jobs."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "bin").mkdir()
        for name, script in COMMANDS.items():
            command = folder / "bin" / name
            command.write_text(f"#!/bin/bash\ncd {folder}\n{script}\n")
            command.chmod(command.stat().st_mode | stat.S_IEXEC)
        (folder / "count").write_text("0")

    def script(self, number: int) -> str:
        return (self.folder / f"{number}.sh").read_text()

    def submitted(self) -> int:
        return int((self.folder / "count").read_text())

    def state(self, number: int) -> str:
        return (self.folder / f"{number}.state").read_text().partition(" ")[2].strip()

    def let(self, number: int, state: str) -> None:
        (self.folder / f"{number}.state").write_text(f"{number} {state}\n")

    def finish(self, number: int, job: Job) -> None:
        for step in job.steps():
            job.folder.result(step).touch()
        self.let(number, "COMPLETED (None)")

    def forget(self, number: int) -> None:
        (self.folder / f"{number}.state").unlink()


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    (tmp_path / "slurm").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'slurm' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return Slurm(tmp_path / "slurm")


class Interruption(Exception):
    """In place of KeyboardInterrupt, which would end the tests."""


@pytest.fixture
def follow(monkeypatch):
    """Runs jobs. Between two looks at them, the next thing happens; after the last, an interruption."""

    def run(jobs: list[Job], *events, settings=None):
        happens = iter(events)

        def sleep(seconds: float) -> None:
            event = next(happens, None)
            if event is None:
                raise Interruption
            event()

        with monkeypatch.context() as patch:
            patch.setattr(cluster, "time", SimpleNamespace(sleep=sleep))
            return ClusterRunner(SLURM, settings or {}).run(jobs)

    return run


def interrupted(follow, jobs: list[Job], *events, **more) -> None:
    with pytest.raises(Interruption):
        follow(jobs, *events, **more)


def nothing() -> None:
    """Nothing happens."""


@pytest.fixture
def jobs(tmp_path):
    return [make_job(tmp_path / "out", "a", "true"), make_job(tmp_path / "out", "b", "true", needs=("a",))]


def test_a_job_waits_for_the_jobs_that_it_needs(slurm, follow, jobs, capsys):
    settings = {"partition": "gpu", "account": "0042", "time": "90", "mem_gb": "16", "cpus_per_task": "4"}
    failures = follow(
        jobs,
        lambda: slurm.let(1, "RUNNING (None)"),
        lambda: slurm.finish(1, jobs[0]),
        lambda: slurm.finish(2, jobs[1]),
        settings=settings,
    )
    assert failures == {} and slurm.submitted() == 2
    first, second = slurm.script(1), slurm.script(2)
    for flag in (
        "partition=gpu",
        "account=0042",
        "time=90",
        "mem=16GB",
        "requeue",
        "signal=USR2@90",
        "job-name=a.seed1",
    ):
        assert f"#SBATCH --{flag}\n" in first
    assert "srun" in first and "--cpus-per-task=4 " in first
    assert "dependency" not in first and "#SBATCH --dependency=afterok:1\n" in second
    said = capsys.readouterr().err
    for line in ("b, seed 1: job 2: submitted, after 1", "a, seed 1: job 1: RUNNING", "a, seed 1: job 1: COMPLETED"):
        assert line in said


def test_a_later_command_follows_the_jobs_of_an_earlier_one(slurm, follow, jobs, capsys):
    interrupted(follow, jobs)
    assert "go on without this command. To look at them: squeue --jobs 1,2." in capsys.readouterr().err
    slurm.let(1, "RUNNING (None)")
    interrupted(follow, jobs)
    slurm.finish(1, jobs[0])
    assert follow(jobs, lambda: slurm.finish(2, jobs[1])) == {}
    assert slurm.submitted() == 2


def test_a_queued_job_with_other_commands_is_not_followed(slurm, follow, jobs, tmp_path):
    interrupted(follow, jobs)
    others = [make_job(tmp_path / "out", "a", "echo other flags"), jobs[1]]
    with pytest.raises(UserError, match="a, seed 1: job 1 in the queue has other flags or other data: give those"):
        follow(others)
    cancel_all(others)
    interrupted(follow, others)
    assert slurm.submitted() == 4


def test_a_run_of_other_flags_fails_alone(slurm, follow, jobs, tmp_path):
    """Such as one that used other trials."""
    jobs[0].folder.path.mkdir(parents=True)
    jobs[0].folder.command("train").write_text("fairseq-train other\n")
    apart = make_job(tmp_path / "out", "c", "true")
    failures = follow([*jobs, apart], lambda: slurm.finish(1, apart))
    assert f"does not say where it ran: remove {jobs[0].folder.path}" in failures[jobs[0].folder]
    assert failures[jobs[1].folder] == "it needs a, which failed" and slurm.submitted() == 1


def test_parameters_that_are_no_text(slurm, follow, jobs):
    settings = {"exclusive": "true", "use_srun": "false", "setup": "module load cuda"}
    interrupted(follow, jobs[:1], settings=settings)
    script = slurm.script(1)
    assert "#SBATCH --exclusive\n" in script and "\nmodule load cuda\n" in script and "\nsrun " not in script


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_waits_until_the_number_of_a_job_is_known(slurm, follow, jobs, number):
    sbatch = slurm.folder / "bin" / "sbatch"
    sbatch.write_text(sbatch.read_text().replace("cd ", f"kill -{int(number)} {os.getpid()}; cd ", 1))
    known = []
    before = signal.signal(number, lambda number, frame: known.append(jobs[0].folder.job.exists()))
    try:
        interrupted(follow, jobs[:1])
    finally:
        signal.signal(number, before)
    assert known == [True]


def test_a_later_command_says_what_is_done_and_what_does_not_change(slurm, follow, jobs, capsys):
    interrupted(follow, jobs, settings={"mem_gb": "16", "time": "60"})
    slurm.finish(1, jobs[0])
    capsys.readouterr()
    interrupted(follow, jobs, settings={"mem_gb": "16", "time": "60"})
    said = capsys.readouterr().err
    assert "1 of 2 runs are done\n" in said and "keeps what it asked" not in said
    interrupted(follow, jobs, settings={"mem_gb": "1", "time": "60"})
    said = "b, seed 1: job 2 keeps what it asked SLURM for (mem_gb=16 time=60): to ask anew, first give this command"
    assert said in capsys.readouterr().err and slurm.submitted() == 2


def test_jobs_that_only_the_command_can_start_are_named(tmp_path, capsys):
    """On this machine, jobs do not wait for each other."""
    jobs = [make_job(tmp_path, "a", "sleep 1"), make_job(tmp_path, "b", "true", needs=("a",))]
    runner = ClusterRunner(LOCAL, {})

    def interrupt(seconds: float) -> None:
        raise Interruption

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interruption):
        patch.setattr(cluster, "time", SimpleNamespace(sleep=interrupt))
        runner.run(jobs)
    assert "Only this command, given again, starts b, seed 1." in capsys.readouterr().err
    cancel_all(jobs)


def test_a_finished_row_needs_no_job(slurm, follow, jobs):
    jobs[0].folder.path.mkdir(parents=True)
    for step in jobs[0].steps():
        jobs[0].folder.result(step).touch()
    assert follow(jobs, lambda: slurm.finish(1, jobs[1])) == {}
    assert slurm.submitted() == 1 and "dependency" not in slurm.script(1)


def fail(slurm: Slurm, job: Job, number: int = 1) -> None:
    job.folder.failure.write_text("train failed:\n    the last line")
    slurm.let(number, "FAILED (NonZeroExitCode)")


def test_a_job_whose_need_has_failed_is_cancelled(slurm, follow, jobs, capsys):
    failures = follow(jobs, lambda: fail(slurm, jobs[0]), nothing)
    assert failures == {
        jobs[0].folder: "train failed:\n    the last line",
        jobs[1].folder: "it needs a, which failed",
    }
    assert slurm.state(2) == "CANCELLED (None)"
    assert "a, seed 1: failed: the last line\n" in capsys.readouterr().err


def test_a_job_that_waits_in_vain_is_submitted_again(slurm, follow, jobs):
    """The command had been stopped when `a` failed; SLURM may, or may not yet, know that `b` cannot start."""
    for state in ("PENDING (DependencyNeverSatisfied)", "PENDING (Dependency)"):
        interrupted(follow, jobs)
        first = slurm.submitted() - 1
        fail(slurm, jobs[0], first)
        slurm.let(first + 1, state)
        interrupted(follow, jobs)
        assert slurm.state(first + 1) == "CANCELLED (None)" and slurm.submitted() == first + 3
        assert f"afterok:{first + 2}\n" in slurm.script(first + 3)
        assert not jobs[0].folder.failure.exists()


def test_the_reason_of_a_job_that_fails_while_the_command_starts_again(slurm, follow, jobs):
    """SLURM does not know of its end yet."""
    interrupted(follow, jobs[:1], lambda: slurm.let(1, "RUNNING (None)"))
    jobs[0].folder.failure.write_text("the reason")
    failures = follow(jobs[:1], lambda: slurm.let(1, "FAILED (NonZeroExitCode)"), nothing)
    assert failures == {jobs[0].folder: "the reason"} and slurm.submitted() == 1


def test_a_job_that_ended_unnoticed(slurm, follow, jobs):
    """SLURM has forgotten it. It left no reason, but a log."""
    job = jobs[0]
    log = job.folder.log("train")

    def end() -> None:
        log.write_text("one\ntwo\n")
        slurm.forget(1)

    failures = follow([job], end, nothing)
    assert failures == {job.folder: f"job 1 has ended; the last line of {log}:\n    two"}
    assert follow([job], lambda: slurm.finish(2, job)) == {} and slurm.submitted() == 2


def test_results_that_are_visible_late_count(slurm, follow, jobs):
    events = (lambda: slurm.let(1, "COMPLETED (None)"), lambda: slurm.finish(1, jobs[0]))
    assert follow(jobs[:1], *events) == {}


def test_a_queue_that_does_not_answer_is_asked_again(slurm, follow, jobs):
    silent = slurm.folder / "silent"
    assert follow(jobs[:1], silent.touch, nothing, silent.unlink, lambda: slurm.finish(1, jobs[0])) == {}
    assert slurm.submitted() == 1


def test_cancelled_jobs_are_submitted_again_by_the_next_command(slurm, follow, jobs, capsys):
    interrupted(follow, jobs)
    cancel_all(jobs)
    assert slurm.state(1) == slurm.state(2) == "CANCELLED (None)"
    assert "b, seed 1: job 2: cancelled\nthe jobs have ended\n" in capsys.readouterr().err
    cancel_all(jobs)
    assert "no job of these runs is in the queue" in capsys.readouterr().err
    interrupted(follow, jobs)
    assert slurm.submitted() == 4 and "afterok:3\n" in slurm.script(4)


def test_jobs_of_another_user_are_not_cancelled(slurm, follow, jobs, capsys):
    interrupted(follow, jobs)
    (slurm.folder / "refuse").touch()
    with pytest.raises(UserError, match=r"scancel 1: scancel: error: Access/permission denied$"):
        cancel_all(jobs)
    assert "cancelled" not in capsys.readouterr().err


def test_what_cannot_be_submitted(slurm, jobs, monkeypatch, follow):
    for settings, message in (
        ({"partitoin": "gpu"}, "slurm: partitoin: there is no such option; there is partition$"),
        ({"x": "1"}, "slurm: x: there is no such option; there is account, .* mem_gb, .* time, "),
        ({"time": "4:00:00"}, "slurm: time=4:00:00: the time is in minutes, such as 240$"),
        ({"mem_gb": "16GB"}, "slurm: mem_gb=16GB: the memory is in gigabytes, such as 16$"),
        ({"mem_gb": "inf"}, "slurm: cannot convert float infinity to integer"),
        ({"gpus_per_node": "1.5"}, "slurm: gpus_per_node=1.5: give a whole number, such as 1$"),
        ({"nodes": "2"}, "slurm: nodes: the table itself sets it, because a run is one process on one node"),
    ):
        with pytest.raises(UserError, match=message):
            ClusterRunner(SLURM, settings)
    (slurm.folder / "refuse").touch()
    with pytest.raises(UserError, match="sbatch refuses a, seed 1: sbatch: error: invalid partition specified"):
        follow(jobs)
    (slurm.folder / "bin" / "squeue").unlink()
    monkeypatch.setenv("PATH", str(slurm.folder / "bin"))
    with pytest.raises(UserError, match="--launcher submitit: no squeue on this machine"):
        ClusterRunner(SLURM, {})
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(UserError, match=r"--launcher needs submitit: pip install '.\[cluster\]'"):
        ClusterRunner(LOCAL, {})


TRAINING = "trap 'echo saved >> ran; exit 143' TERM; touch begun; while true; do sleep 0.05; done"
"""Trains until SIGTERM, and saves."""


@pytest.fixture
def handlers():
    """As submitit leaves them. What the test changes is put back. A job that waits in vain fails after a minute."""

    def too_late(number, frame) -> None:
        raise TimeoutError("the job has not ended within a minute")

    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGUSR2)}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    for number, handler in before.items():
        signal.signal(number, handler)


def when_begun(job: Job, *numbers: signal.Signals) -> None:
    """Send signals to this process when the training has begun."""

    def send() -> None:
        patience = time.monotonic() + 50  # less than the minute of `handlers`
        while not (job.folder.path / "begun").exists() and time.monotonic() < patience:
            time.sleep(0.02)
        for number in numbers:
            os.kill(os.getpid(), number)

    threading.Thread(target=send).start()


@pytest.mark.parametrize(
    ("preemption", "numbers"),
    [("USR2", (signal.SIGUSR2,)), ("USR2", (signal.SIGTERM, signal.SIGUSR2)), ("TERM", (signal.SIGTERM,))],
)
def test_a_preempted_job_saves_once_and_goes_on_later(tmp_path, monkeypatch, handlers, preemption, numbers):
    """At the signal that announces the end, submitit calls `checkpoint`, and ends the process. SLURM sends SIGTERM
    before, and waits."""
    monkeypatch.setenv("SUBMITIT_EXECUTOR", SLURM)
    monkeypatch.setenv("SUBMITIT_PREEMPT_SIGNAL", preemption)
    job = make_job(tmp_path, "a", f"test -e begun || {{ {TRAINING}; }}")
    task, later = NodeTask(job), []

    def requeue(number, frame) -> None:
        later.append(task.checkpoint())
        assert ran(job) == ["train", "saved"]
        raise SystemExit

    signal.signal(numbers[-1], requeue)
    when_begun(job, *numbers)
    with pytest.raises(SystemExit):
        task()
    assert not job.done and not job.folder.failure.exists()
    later[0].result()
    assert job.done and ran(job) == ["train", "saved", "train", "generate"]


def test_a_failed_job_says_why(tmp_path, monkeypatch, handlers):
    monkeypatch.setenv("SUBMITIT_EXECUTOR", SLURM)
    job = make_job(tmp_path, "a", "echo the reason; exit 3")
    with pytest.raises(JobFailed):
        NodeTask(job)()
    assert job.folder.failure.read_text().endswith("the reason")


@LONG
def test_jobs_of_this_machine(tmp_path):
    """`b` starts when `a` has ended; `bad` fails, and `after` with it. Nothing is left to do afterwards."""
    jobs = [make_job(tmp_path, name, "true") for name in ("a", "bad")]
    jobs[1] = make_job(tmp_path, "bad", "echo the reason; exit 3")
    jobs += [make_job(tmp_path, "b", "true", needs=("a",)), make_job(tmp_path, "after", "true", needs=("bad",))]
    failures = ClusterRunner(LOCAL, {}).run(jobs)
    assert list(failures) == [jobs[1].folder, jobs[3].folder] and failures[jobs[1].folder].endswith("the reason")
    assert jobs[0].done and jobs[2].done and not jobs[3].folder.path.exists()
    assert ran(jobs[0]) == ran(jobs[2]) == ["train", "generate"]


@LONG
def test_a_cancelled_job_of_this_machine_saves(tmp_path, capsys):
    job = make_job(tmp_path, "a", TRAINING)
    when_begun(job, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ClusterRunner(LOCAL, {}).run([job])
    (look,) = re.findall(r"To look at them: (ps .+?)\.", capsys.readouterr().err)
    assert "submitit" in run(*look.split(), "-f").stdout
    cancel_all([job])
    assert ran(job) == ["train", "saved"] and not job.done


TABLE = """
title: A cluster
optimizer: --optimizer adam --lr 3e-3
train: --criterion cross_entropy --max-tokens 400 --max-epoch 3
generate: --beam 2
slurm: {time: 60, signal_delay_s: 60}
rows:
  - {name: preempted, arch: rnnsearch, train: "--embed-dim 8 --hidden-dim 8 --init-std 0.1 --max-epoch 300"}
  - {name: cancelled, arch: rnnsearch, train: "--embed-dim 8 --hidden-dim 8 --init-std 0.1 --max-epoch 300"}
  - {name: failing, arch: rnnsearch, train: "--num-batch-buckets 2"}
  - {name: after, path: "{failing}"}
  - {name: both, path: "{preempted}:{cancelled}"}
"""


def answers(*command: str) -> bool:
    return shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0


@LONG
@pytest.mark.skipif(not answers("sinfo"), reason="SLURM does not run here")
def test_a_table_runs_on_slurm(tiny_data, tmp_path):
    """Stop the command; preempt a job, and cancel another one while it runs. The same command then finishes both."""
    table, out = tmp_path / "table.yaml", tmp_path / "out"
    table.write_text(TABLE)
    command = [
        *(str(Path(sys.executable).parent / "lwc-fairseq"), "table", str(table)),
        *("--data", str(tiny_data), "--out", str(out)),
        *("--launcher", "submitit", "--train=--cpu", "--generate=--cpu"),
    ]

    def wait_for(row: str, text: str, file: str = "train.log") -> None:
        patience, log = time.monotonic() + 600, out / row / "seed1" / file
        while not (log.exists() and text in log.read_text()):
            assert time.monotonic() < patience, (row, text)
            time.sleep(0.2)

    def job(row: str) -> str:
        return json.loads((out / row / "seed1" / "job").read_text())["number"]

    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(command, cwd=ROOT, stderr=said, stdout=said, preexec_fn=heed_interrupt)
        wait_for("preempted", "begin training epoch 2")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 128 + signal.SIGINT
    assert "the jobs go on without this command" in (tmp_path / "said").read_text()
    first = {row: job(row) for row in ("preempted", "cancelled", "both")}
    subprocess.run(["scancel", "--signal=USR2", first["preempted"]], check=True)
    wait_for("preempted", "the same command goes on there")
    wait_for("cancelled", "begin training epoch 2")
    subprocess.run([*command, "--rows", "cancelled", "--cancel"], cwd=ROOT, check=True)
    wait_for("cancelled", "the same command goes on there")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=600)
    assert done.returncode == 1, done.stderr
    assert job("preempted") == first["preempted"] and job("cancelled") != first["cancelled"]
    assert "after, seed 1: failed: it needs failing, which failed" in done.stderr
    assert "--num-batch-buckets 2: concat_translation packs" in done.stderr
    for row in ("preempted", "cancelled"):
        assert "Loaded checkpoint" in (out / row / "seed1" / "train.log").read_text()
    record = json.loads((out / "table.json").read_text())
    assert record["hardware"] == hardware()
    values = {row["name"]: row["value"] for row in record["rows"]}
    assert {row for row, value in values.items() if value is None} == {"failing", "after"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "10:30", "--collect"), "--out 10:30: fairseq cannot read a path with ':': name another folder"),
        (("--slurm", "partition=gpu"), "--slurm: add --launcher submitit, or leave it out"),
        (("--launcher", "local", "--parallel", "2"), "--parallel 2: all runs become jobs, which the queue starts"),
        (("--launcher", "local", "--slurm", "gpu"), "--slurm gpu: give KEY=VALUE, such as partition=gpu"),
    ],
)
def test_arguments_that_contradict_each_other(tiny_data, tmp_path, arguments, message):
    words = ("table", "lwc_table3", "--data", tiny_data, "--out", tmp_path / "out", *arguments)
    assert message in refusal(*words) and not (tmp_path / "out").exists()
