"""The steps that check the installation: `lwc-fairseq doctor` and the tests that need CUDA."""

import re

from machine import ROOT, Machine, last_line
from outcome import Findings, Row, StepFailed

NEEDS_CUDA = re.compile(r"cuda\.is_available\(\)")
SELECTION = "cuda or flash_path"
"""Which tests of those files run on a GPU, as an expression of pytest -k."""


def doctor(machine: Machine) -> Findings:
    output = machine.out / "doctor.txt"
    failure = None
    try:
        machine.run(["lwc-fairseq", "doctor"], machine.out / "doctor.log", output)
    except StepFailed:
        if not output.exists() or not re.search(r"problems? found$", output.read_text(encoding="utf-8"), re.MULTILINE):
            raise
        failure = f"it found problems: {output} has a command for each"
    return Findings(findings(output.read_text(encoding="utf-8")), failure)


def findings(printed: str) -> list[Row]:
    """The lines of the doctor's first paragraph."""
    lines = printed.partition("\n\n")[0].splitlines()
    return [{"checked": name, "found": value.strip()} for name, _, value in (line.partition("  ") for line in lines)]


def tests(machine: Machine) -> Findings:
    """Run the tests that are skipped where there is no GPU."""
    folder = ROOT / "tests"
    files = [path for path in sorted(folder.rglob("test_*.py")) if NEEDS_CUDA.search(path.read_text(encoding="utf-8"))]
    log = machine.out / "tests.log"
    pytest = ("pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", SELECTION)
    row = {"tests": f"those with CUDA in {len(files)} files"}
    try:
        machine.run([*pytest, *files], log)
    except StepFailed:
        broken = re.findall(r"^FAILED (\S+)", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if not broken:
            raise
        return Findings([{**row, "result": last_line(log)}], f"failed: {', '.join(broken)}; the log is {log}")
    result = last_line(log)
    return Findings([{**row, "result": result}], None if " passed" in result else f"no test ran; the log is {log}")
