"""examples/cuda/verify.sh on the simulated device: what it writes and keeps, and what it does when a step fails."""

from pathlib import Path
from textwrap import dedent

import pytest
import torch

from conftest import LONG, ROOT, run, run_python

FOLDER = ROOT / "examples" / "cuda"
PRETENDED = "simulated device: no GPU was used"
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: run verify.sh itself")


def verify(out: Path, only: str = ""):
    """Run --quick, all of it or some steps."""
    chosen = ("--only", only) if only else ()
    return run("bash", FOLDER / "verify.sh", "--quick", "--out", out, *chosen, check=False, OMP_NUM_THREADS="1")


def rows(page: str) -> list[str]:
    """The lines of a page's tables, without headers."""
    lines = page.splitlines()
    return [line for line, after in zip(lines, [*lines[1:], ""], strict=True) if is_row(line) and not is_rule(after)]


def is_rule(line: str) -> bool:
    return line.startswith("| ---")


def is_row(line: str) -> bool:
    return line.startswith("| ") and not is_rule(line)


def assert_every_line_says_so(done, page: str) -> None:
    results = [line for line in done.stdout.splitlines() if line.startswith("  succ") or "done before" in line]
    assert results and all(line.endswith(PRETENDED) for line in results)
    assert rows(page) and all(line.endswith(f"| {PRETENDED} |") for line in rows(page))


def test_a_step_that_fails_is_named_and_repeated_and_the_others_run_once(tmp_path):
    blocked = tmp_path / "doctor.log"
    blocked.mkdir()
    failed = verify(tmp_path, "doctor,two_processes")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == "verify: 1 of 2 steps failed: doctor"
    assert f"  failed: IsADirectoryError: [Errno 21] Is a directory: '{blocked}', " in failed.stdout
    assert "[2/2] two_processes\n  succeeded" in failed.stdout
    page = (tmp_path / "report.md").read_text()
    assert page.index("## Failures") < page.index("## Two processes") and "1 of 2 steps succeeded, 1 failed." in page

    blocked.rmdir()
    done = verify(tmp_path, "doctor,two_processes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "on the CPU" not in done.stdout and "two_processes: done before" in done.stdout
    page = (tmp_path / "report.md").read_text()
    assert "Failures" not in page and "2 of 2 steps succeeded, 0 failed." in page
    assert_every_line_says_so(done, page)
    html = (tmp_path / "report.html").read_text()
    assert html.startswith("<!DOCTYPE html>") and html.count(PRETENDED) > len(rows(page)) and "http" not in html


def test_what_does_not_exist_is_refused(tmp_path):
    refused = verify(tmp_path, "lwc,lvc")
    assert refused.returncode == 2 and "--only lvc: no step has such a name" in refused.stderr.splitlines()[-1]


def in_folder(script: str, *arguments) -> None:
    """Run a script that imports the modules of examples/cuda."""
    run_python("-c", dedent(script), *arguments, path=[FOLDER])


def test_which_results_are_failures():
    in_folder("""
        import math
        from comparison import PRECISIONS, judge
        expected = {update: 10.0 for update in range(1, 26)}
        stock = {0: (-2.0, "a"), 1: (-3.0, "b")}

        def failure(found=expected, ours=stock, precision="fp16"):
            return judge("lwc", PRECISIONS[precision], found, expected, ours, stock).failure

        assert failure() is None and failure({**expected, 7: 10.09}) is None
        assert "losses differ from the CPU's by up to 1.1e-02" in failure({**expected, 7: 10.11})
        assert "more than 2e-03" in failure({**expected, 7: 10.09}, precision="fp32")
        assert "by up to inf" in failure({**expected, 7: math.nan})
        assert failure(ours={0: (-2.01, "c"), 1: (-3.0, "b")}) is None
        assert "mean scores -2.550 and, by fairseq's, -2.500" in failure(ours={0: (-2.1, "a"), 1: (-3.0, "b")})
        assert "searches differ" in failure(ours={0: (-2.5, "a")})
    """)


def test_results_hold_under_the_same_conditions_only(tmp_path):
    in_folder(
        """
        import sys
        from pathlib import Path
        from outcome import Outcome, read_outcome
        kept = Path(sys.argv[1]) / "doctor.json"
        outcome = Outcome("doctor", "Installation", [], None, 1.5, "2026-11-22", "a GPU", "a GPU, PyTorch 2.13.0")
        outcome.write(kept)
        assert read_outcome(kept, "a GPU, PyTorch 2.13.0") == outcome
        assert read_outcome(kept, "another GPU, PyTorch 2.13.0") is None
        """,
        tmp_path,
    )


def test_other_code_is_another_condition(tmp_path):
    in_folder(
        """
        import sys
        from pathlib import Path
        import machine
        machine.ROOT = Path(sys.argv[1])
        code = machine.ROOT / "lwc_fairseq" / "models" / "lwc.py"
        code.parent.mkdir(parents=True)
        found = []
        for text in ("layers = 1", "layers = 14", "layers = 1"):
            code.write_text(text)
            found.append(machine.Machine(machine.ROOT / "out", False, ()).conditions)
        assert found[0] == found[2] != found[1]
        """,
        tmp_path,
    )


def test_the_cpu_trains_once_under_the_same_conditions(tmp_path):
    in_folder(
        """
        import sys
        from pathlib import Path
        import comparison
        from machine import Machine
        trained = []
        Machine.run_on_cpu = staticmethod(lambda command, log: trained.append(command))
        comparison.training = lambda *words: words
        comparison.read_losses = lambda log, first, last: {update: 1.5 for update in range(first, last + 1)}
        for quick in (False, False, True):
            losses = comparison.reference(Machine(Path(sys.argv[1]), quick, ()), "lwc", "sgd")
            assert losses == {update: 1.5 for update in range(1, 7)}
        assert len(trained) == 2
        """,
        tmp_path,
    )


def test_commands_run_on_the_first_gpu_and_say_why_they_fail(tmp_path):
    """Of a machine with two GPUs, as far as a machine without any can tell."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys; print(os.environ['CUDA_VISIBLE_DEVICES']); sys.exit('no' if sys.argv[1:] else 0)"
    )
    in_folder(
        """
        import sys
        from pathlib import Path
        from machine import Machine
        from outcome import StepFailed
        out = Path(sys.argv[1])
        machine = Machine(out, False, ("3", "5"))
        machine.run([str(out / "program.py")], out / "log", out / "output")
        assert (out / "output").read_text() == "3\\n"
        machine.run_on_cpu([sys.executable, str(out / "program.py")], out / "log")
        assert (out / "log").read_text() == "\\n"
        try:
            machine.run([str(out / "program.py"), "fail"], out / "log")
        except StepFailed as failed:
            assert str(failed) == f"program.py ended with status 1: no; the log is {out / 'log'}"
        else:
            raise AssertionError
        """,
        tmp_path,
    )


def test_launches_counts_overlapping_kernels_once():
    program = "from launches import union; assert union([(5, 7), (0, 3), (1, 2), (2, 4)]) == 6"
    run_python("-c", program, path=[ROOT / "examples" / "benchmark"])


@LONG
def test_two_processes(tmp_path):
    """The step that needs two GPUs, with --cpu and so over gloo."""
    in_folder(
        """
        import sys
        from pathlib import Path
        import several
        from machine import Machine

        training = several.training
        several.training = lambda *arguments: [*training(*arguments), "--cpu"]
        found = several.two_processes(Machine(Path(sys.argv[1]), True, ("0", "1")))
        assert found.failure is None and "20 updates" in found.rows[0]["result"], found
        """,
        tmp_path,
    )


@LONG
def test_the_whole(tmp_path):
    done = verify(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "report.md").read_text()
    assert_every_line_says_so(done, page)
    (trained,) = [row for row in rows(page) if row.startswith("| lwc | fp16 |")]
    assert " → " in trained and " | 4 of 4 | " in trained
    titles = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    sections = "Installation, Tests, Training and translation, Speed and peak memory, Kernel launches, Two processes"
    assert titles == [*sections.split(", "), "Steps"]
    made = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if path.parent.name != tmp_path.name)
    again = verify(tmp_path)
    assert again.returncode == 0 and again.stdout.count("done before") == done.stdout.count("succeeded")
    assert made == sorted((path, path.stat().st_mtime_ns) for path, _ in made)
