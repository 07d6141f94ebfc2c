"""Compare the speed of this plugin's models with that of fairseq's, on the same sentences, in one run.

    python examples/benchmark/benchmark.py --family FAMILY --phase train|generate --device cpu|cuda

In a block, each system in turn makes some updates, or translates the test set. The benchmark computes the ratio of the
speeds within each block and prints the median over the blocks. Before it measures, it compares the loss and gradients
(or the translations) of our system with those of fairseq's own criterion (or search), and stops if they differ. In
generation it also measures our system under fairseq's search. The sentences are random; only their lengths and word
frequencies are like those of real text.
"""

import argparse
import json
import logging
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import torch
from tqdm import trange

import generation
import training
from corpus import write_data
from lwc_fairseq.experiments.identity import hardware, versions
from lwc_fairseq.files import write_whole
from lwc_fairseq.pages import markdown_table
from systems import FAMILIES, Family

PRECISIONS = {"fp32": "fp32", "medium": 'fp32, set_float32_matmul_precision("medium")', "bf16": "bf16", "fp16": "fp16"}


FLAGS: dict[str, Any] = {"type": shlex.split, "action": "extend", "default": [], "metavar": "FLAGS"}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, required=True)
    parser.add_argument("--phase", choices=["train", "generate"], required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--max-tokens", type=int, default=4096, help="source plus target tokens of an update")
    parser.add_argument("--blocks", type=int, default=5, help="timed blocks (default: 5), after one warm-up block")
    parser.add_argument("--updates", type=int, default=2, help="updates in a block of training (default: 2)")
    parser.add_argument("--sentences", type=int, default=256, help="sentences in the test set (default: 256)")
    parser.add_argument("--batch-size", type=int, default=64, help="sentences translated at a time (default: 64)")
    parser.add_argument("--beam", type=int, default=5, help="beam width (default: 5)")
    parser.add_argument("--length", type=int, nargs=2, metavar=("LOW", "HIGH"), help="uniform source lengths, in words")
    parser.add_argument("--types", type=int, help="size of the vocabulary (default: that of the family in systems.py)")
    parser.add_argument("--ours", **FLAGS, help="more flags for our model")
    parser.add_argument("--peer", **FLAGS, help="more flags for fairseq's model")
    parser.add_argument("--work", type=Path, default=Path("runs/benchmark"), help="a folder for data and checkpoints")
    parser.add_argument("--out", type=Path, default=Path("examples/benchmark/results"), help="a folder for results")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="measure processor time instead of wall-clock time: it varies less if the machine does other work",
    )
    parser.add_argument("--memory", action="store_true", help="also measure the peak memory of training")
    # The number of the system that a process of its own measures the memory of.
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.processor_time and args.device == "cuda":
        parser.error("--processor-time is for --device cpu: on a GPU, the processor does not compute")
    if args.precision == "fp16" and args.device == "cpu":
        parser.error("--precision fp16 is for --device cuda: fairseq has no fp16 on a CPU")
    if args.family == "abd_paper" and args.phase == "generate":
        parser.error("--family abd_paper is for --phase train: the paper gives no other speed")
    return args


def clock(args: argparse.Namespace) -> Callable[[], float]:
    """The clock of the measurement, in seconds."""
    return time.process_time if args.processor_time else time.perf_counter


def chosen(args: argparse.Namespace) -> Family:
    """The family with the flags of the command line."""
    family = FAMILIES[args.family]
    ours = replace(family.ours, model=(*family.ours.model, *args.ours))
    peers = tuple(
        replace(peer, model=(*peer.model, *(args.peer if peer.task == "translation" else args.ours)))
        for peer in family.peers
    )
    if args.phase == "generate":
        peers = (*peers, replace(ours, name=f"{ours.name}, fairseq's search", generate=ours.plain_generate))
    return Family(args.types or family.types, ours, peers)


def make_data(args: argparse.Namespace, family: Family) -> Path:
    low, high = args.length or ("real", "lengths")
    name = f"{family.types}-{args.sentences}-{low}-{high}"
    pairs = {"train": 5000, "valid": 10, "test": args.sentences}
    return write_data(args.work / name, family.types, pairs, args.length)


def with_reverse_model(family: Family, data: Path, work: Path) -> Family:
    """Save an untrained right-to-left model for the systems that need one, and return the family with its path."""
    right_to_left = next((peer for peer in family.peers if "--reverse-target" in peer.model), None)
    if right_to_left is None:
        return family
    folder = work / "r2l"
    folder.mkdir(parents=True, exist_ok=True)
    path = str(generation.save_checkpoint(right_to_left, data, folder))
    peers = [
        replace(peer, model=tuple(path if word == "{r2l}" else word for word in peer.model)) for peer in family.peers
    ]
    return replace(family, peers=tuple(peers))


def train_systems(args: argparse.Namespace, family: Family, data: Path) -> list[training.Training]:
    batches = batches_of(args, family, data)
    settings = data, args.device, args.precision, batches
    made = [training.Training(system, system.criterion, *settings) for system in (family.ours, *family.peers)]
    if family.ours.plain_criterion != family.ours.criterion:
        plain = training.Training(family.ours, family.ours.plain_criterion, *settings)
        training.check_equal(made[0], plain, args.precision)
    return made


def batches_of(args: argparse.Namespace, family: Family, data: Path) -> list[list[int]]:
    dataset = training.read_pairs(family.peers[0], data)
    sizes = list(zip(dataset.src_sizes.tolist(), dataset.tgt_sizes.tolist(), strict=True))
    return training.make_batches(sizes, args.max_tokens, args.blocks * args.updates)


def time_training(args: argparse.Namespace, systems: list[training.Training]) -> list[list[float]]:
    """Target tokens a second of each system in each block."""
    speeds = [[] for _ in systems]
    for block in trange(-1, args.blocks, desc="blocks"):  # block -1 is the warm-up
        numbers = range(max(0, block) * args.updates, (max(0, block) + 1) * args.updates)
        if block == -1 and (args.device == "cuda" or args.family == "abd_paper"):
            # On a GPU, the first update of each shape takes many times as long, because it allocates memory. NSC
            # searches for the reverse translation of each sentence in its first epoch, and then keeps it.
            numbers = range(args.blocks * args.updates)
        for system, of_system in zip(systems, speeds, strict=True):
            began = clock(args)()
            for number in numbers:
                system.update(number)
            spent = clock(args)() - began
            if block >= 0:
                of_system.append(sum(map(system.target_tokens, numbers)) / spent)
    return speeds


def generate_systems(args: argparse.Namespace, family: Family, data: Path) -> list[generation.Generation]:
    # Untrained models do not end sentences, so every system makes equally many steps.
    flags = ["--beam", str(args.beam), "--batch-size", str(args.batch_size), "--max-len-a", "1.1", "--max-len-b", "0"]
    flags += ["--num-workers", "0"]  # ending worker processes takes seconds in each run
    flags += training.PRECISION_FLAGS.get(args.precision, [])
    made = []
    for system in (family.ours, *family.peers):
        checkpoint = generation.save_checkpoint(system, data, args.work)
        made.append(generation.Generation(system, system.generate, data, checkpoint, args.device, flags))
        if not made[1:]:
            plain = generation.Generation(system, system.plain_generate, data, checkpoint, args.device, flags)
            generation.check_equal(made[0], plain, args.precision)
    return made


def time_generation(args: argparse.Namespace, systems: list[generation.Generation]) -> list[list[float]]:
    """Target tokens a second of each system in each block."""
    speeds = [[] for _ in systems]
    for block in trange(-1, args.blocks, desc="blocks"):
        for system, of_system in zip(systems, speeds, strict=True):
            spent = system.run(clock(args))
            if block >= 0:
                of_system.append(sum(len(text.split()) + 1 for _, text in system.hypotheses().values()) / spent)
    return speeds


def print_memory(args: argparse.Namespace, family: Family, data: Path) -> None:
    """Prints the peak memory of one system, the only one that this process runs."""
    system = (family.ours, *family.peers)[args.memory_of]
    trained = training.Training(
        system, system.criterion, data, args.device, args.precision, batches_of(args, family, data)[-1:]
    )
    for number in range(2):
        trained.update(number)
    print(trained.peak_memory())


def memory(number: int) -> int:
    """The peak memory of one system, measured in a process of its own."""
    command = [sys.executable, *sys.argv, "--memory-of", str(number)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])


def write(args: argparse.Namespace, family: Family, speeds: list[list[float]], memories: list[int | None]) -> None:
    systems = (family.ours, *family.peers)
    ratios = [statistics.median(a / b for a, b in zip(speeds[0], speed, strict=True)) for speed in speeds]
    about = {
        "family": args.family,
        "phase": args.phase,
        "precision": PRECISIONS[args.precision],
        "device": device(args),
        "versions": versions(),
        "date": date.today().isoformat(),
        "types": family.types,
        "blocks": args.blocks,
        "command": shlex.join(["python", *sys.argv]),
        "settings": {name: str(value) for name, value in vars(args).items()},
        "systems": [
            {"name": system.name, "tokens a second": speed, "ours / this": ratio, "peak bytes": peak}
            for system, speed, ratio, peak in zip(systems, speeds, ratios, memories, strict=True)
        ],
    }
    about["clock"] = "processor time" if args.processor_time else "wall-clock time"
    length = "-".join(map(str, args.length or ()))
    special = [args.precision if args.precision != "fp32" else "", length and f"length-{length}"]
    special += [f"beam-{args.beam}"] if args.phase == "generate" and args.beam != 5 else []
    name = "_".join(filter(None, [args.family, args.phase, args.device, *special]))
    args.out.mkdir(parents=True, exist_ok=True)
    write_whole(args.out / f"{name}.json", json.dumps(about, indent=1))
    page = markdown(about)
    write_whole(args.out / f"{name}.md", page)
    print(page)


def device(args: argparse.Namespace) -> str:
    """The hardware, and the settings that speed depends on."""
    if args.device == "cuda":
        return hardware()
    allocator = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("MALLOC_")]
    return ", ".join([hardware(), f"{torch.get_num_threads()} threads", *allocator])


def markdown(about: dict) -> str:
    with_memory = any(system["peak bytes"] for system in about["systems"])
    header = [
        "",
        "target tokens a second",
        "ours ÷ this",
        "range over blocks",
        *(["peak memory"] if with_memory else []),
    ]
    ours = about["systems"][0]["tokens a second"]
    rows = []
    for system in about["systems"]:
        within = [a / b for a, b in zip(ours, system["tokens a second"], strict=True)]
        spread = f"{min(within):.2f}–{max(within):.2f}"
        peak = [f"{system['peak bytes'] / 2**30:.2f} GiB"] if with_memory else []
        speed = f"{statistics.median(system['tokens a second']):,.0f}"
        rows.append([system["name"], speed, f"{system['ours / this']:.2f}", spread, *peak])
    lines = [f"# {about['family']}, {about['phase']}", "", *markdown_table(header, rows), ""]
    lines.append(
        f"{about['precision']}; {about['types']:,} types; {about['clock']}, medians of {about['blocks']} blocks. "
        f"{about['date']}, {about['device']}, {about['versions']}."
    )
    if with_memory:
        lines.append("Peak memory: on a CPU that of the whole process.")
    return "\n".join([*lines, "", "```", about["command"], "```", ""])


def main() -> None:
    args = parse()
    logging.disable(logging.INFO)
    if args.precision == "medium":
        torch.set_float32_matmul_precision("medium")
    family = chosen(args)
    data = make_data(args, family)
    family = with_reverse_model(family, data, args.work)
    if args.memory_of is not None:
        print_memory(args, family, data)
        return
    memories: list[int | None] = [None] * (1 + len(family.peers))
    if args.phase == "train":
        if args.memory:  # first, while this process does not use the GPU's memory
            memories = [memory(number) for number in range(len(memories))]
        speeds = time_training(args, train_systems(args, family, data))
    else:
        speeds = time_generation(args, generate_systems(args, family, data))
    write(args, family, speeds, memories)


if __name__ == "__main__":
    main()
