"""Run the steps of verify.sh, and write its page after each of them.

    python examples/cuda/verify.py [--quick] [--only STEP,...] [--out FOLDER]

Use verify.sh, which explains the arguments. The results of a step are in OUT/steps/STEP.json.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import checks
import columns
from comparison import PRECISIONS, compare
from lwc_fairseq.experiments.schedule import devices
from lwc_fairseq.files import make_folder
from lwc_fairseq_compat import UserError
from machine import Machine
from models import MODELS
from outcome import Findings, Outcome, StepFailed, read_outcome
from report import write_report
from several import two_processes

QUICK = {("lwc", "fp32"), *((family, "fp16") for family in MODELS)}
"""The models and precisions of --quick."""


@dataclass(frozen=True)
class Step:
    name: str
    section: str
    call: Callable[[Machine], Findings]


def all_steps(quick: bool) -> list[Step]:
    """The steps, in the order in which they run."""
    compared = [(family, name) for family in MODELS for name in PRECISIONS if not quick or (family, name) in QUICK]
    return [
        Step("doctor", "Installation", checks.doctor),
        Step("tests", "Tests", checks.tests),
        *(
            Step(
                f"{family}_{name}",
                "Training and translation",
                partial(compare, family=family, precision=PRECISIONS[name]),
            )
            for family, name in compared
        ),
        *(
            Step(f"benchmark_{column.name}", "Speed and peak memory", partial(columns.measure, column=column))
            for column in columns.columns(quick)
        ),
        *(Step(f"launches_{family}", "Kernel launches", partial(columns.launches, family=family)) for family in MODELS),
        Step("two_processes", "Two processes", two_processes),
    ]


def run(steps: list[Step], machine: Machine, command: str) -> int:
    """Run the steps that have not succeeded yet. Returns the exit status."""
    kept = {step.name: machine.out / "steps" / f"{step.name}.json" for step in steps}
    make_folder(machine.out / "steps")
    outcomes = {step.name: read_outcome(kept[step.name], machine.conditions) for step in steps}
    for number, step in enumerate(steps, 1):
        before = outcomes[step.name]
        title = f"[{number}/{len(steps)}] {step.name}"
        if before and before.failure is None:
            print(f"{title}: done before; {machine.device}", flush=True)
        else:
            print(title, flush=True)
            outcomes[step.name] = outcome = attempt(step, machine)
            outcome.write(kept[step.name])
            result = f"failed: {outcome.failure}" if outcome.failure else "succeeded"
            print(f"  {result}, {outcome.seconds:.0f} s; {machine.device}", flush=True)
        write_report(machine, [outcome for outcome in outcomes.values() if outcome], len(steps), command)
    failed = [outcome.step for outcome in outcomes.values() if outcome and outcome.failure]
    print(f"{machine.out / 'report.md'}, {machine.out / 'report.html'}; {machine.device}")
    if failed:
        print(f"verify: {len(failed)} of {len(steps)} steps failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def attempt(step: Step, machine: Machine) -> Outcome:
    """Run a step. Whatever goes wrong in it is a result, so that the steps after it run."""
    began = time.monotonic()
    try:
        findings = step.call(machine)
    except StepFailed as failed:
        findings = Findings([], str(failed))
    except Exception as error:
        findings = Findings([], f"{type(error).__name__}: {' '.join(str(error).split())}")
    seconds, today = time.monotonic() - began, date.today().isoformat()
    where = (machine.device, machine.conditions)
    return Outcome(step.name, step.section, findings.rows, findings.failure, seconds, today, *where)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer precisions and batch sizes")
    parser.add_argument("--only", default="", metavar="STEP,...", help="steps whose names contain one of these words")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/cuda"), help="a folder for everything (default: runs/cuda)"
    )
    args = parser.parse_args()
    words, every = list(filter(None, args.only.split(","))) or [""], all_steps(args.quick)
    steps = [step for step in every if any(word in step.name for word in words)]
    for word in words:
        if not any(word in step.name for step in every):
            parser.error(f"--only {word}: no step has such a name; there are {', '.join(step.name for step in every)}")
    machine = Machine(args.out.absolute(), args.quick, tuple(filter(None, devices(None))))
    command = ["bash", "examples/cuda/verify.sh", *sys.argv[1:]]
    try:
        return run(steps, machine, shlex.join(command))
    except UserError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
