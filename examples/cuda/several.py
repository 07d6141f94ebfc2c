"""Two processes on two GPUs beside one process with the doubled batch."""

from comparison import read_losses, relative
from machine import Machine, empty_folder
from models import optimizer, training
from outcome import Findings

UPDATES = 20
TOLERANCE = 2e-3


def two_processes(machine: Machine) -> Findings:
    """Train in two processes over NCCL, if there are two GPUs."""
    if len(machine.gpus) < 2:
        there = "there is no GPU" if machine.pretended else "there is one GPU"
        return Findings([{"processes": "two, over NCCL", "result": f"left out: {there}"}])
    folder = empty_folder(machine.out / "models" / "two_processes")
    flags = (*optimizer("lwc", "sgd"), "--max-update", UPDATES, "--no-save", "--batch-size", "40")
    machine.run([*training(machine, folder, "lwc", *flags), "--update-freq", "2"], folder / "one.log")
    machine.run_on_two(training(machine, folder, "lwc", *flags), folder / "two.log")
    one, two = (read_losses(folder / f"{name}.log", 1, UPDATES) for name in ("one", "two"))
    difference = max(relative(two[update], one[update]) for update in one)
    result = f"{UPDATES} updates, loss {one[UPDATES]:.3f} → {two[UPDATES]:.3f}, largest difference {difference:.1e}"
    failure = None if difference <= TOLERANCE else f"losses differ by up to {difference:.1e}, more than {TOLERANCE:.0e}"
    return Findings([{"processes": "two, over NCCL", "result": result}], failure)
