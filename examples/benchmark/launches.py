"""Count the kernels of an update and of a decoding step on a GPU, and how long the GPU waits for them.

    python examples/benchmark/launches.py --family FAMILY --out FILE

PyTorch's profiler lists the kernels and copies that run on the GPU. The idle share is the part of the time in which
none of them runs. The time is that of an update, or of a step, without the profiler. A step is the difference between
translations of two lengths, divided by the difference of the lengths, so it does not include the encoder. The file is
JSON.
"""

import argparse
import json
import logging
import shlex
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tasks import setup_task
from fairseq.utils import move_to_cuda, set_torch_seed
from torch.profiler import ProfilerActivity, profile, supported_activities

from corpus import write_data
from lwc_fairseq.files import write_whole
from systems import FAMILIES, System
from training import Training, configure, make_batches, read_pairs

ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
"""The categories of a trace's events that keep the GPU busy."""


@dataclass(frozen=True)
class Work:
    """What the GPU did.

    Args:
        launches: the number of kernels and copies.
        busy: the seconds in which at least one of them ran.
        seconds: the time without the profiler.
    """

    launches: float
    busy: float
    seconds: float

    def row(self, system: System, phase: str, precision: str) -> dict[str, str]:
        idle = 1 - self.busy / self.seconds if self.launches else None
        return {
            "system": system.name,
            "of": phase,
            "precision": precision,
            "launches": f"{self.launches:,.0f}",
            "time": f"{1000 * self.seconds:.1f} ms",
            "GPU idle": "no kernel was seen" if idle is None else f"{max(0.0, idle):.0%}",
        }


def per_step(short: Work, long: Work, steps: int) -> Work:
    """The work of a step, when `long` has `steps` more than `short`."""
    pairs = ((short.launches, long.launches), (short.busy, long.busy), (short.seconds, long.seconds))
    return Work(*((more - less) / steps for less, more in pairs))


def observe(call: Callable[[], None]) -> Work:
    """Call a function three times without the profiler, after a warm-up, and once with it."""
    call()
    spent = statistics.median(seconds_of(call) for _ in range(3))
    # Without events of the CPU, the profiler slows down the launches less. A CPU build of PyTorch has no others.
    with profile(activities={ProfilerActivity.CUDA} & supported_activities() or supported_activities()) as profiler:
        call()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    intervals = [(event["ts"], event["ts"] + event["dur"]) for event in events if event.get("cat") in ON_GPU]
    return Work(len(intervals), union(intervals) / 1e6, spent)


def seconds_of(call: Callable[[], None]) -> float:
    synchronize()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def union(intervals: Iterable[tuple[float, float]]) -> float:
    """The length of the union of intervals (start, end)."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def update(args: argparse.Namespace, system: System, data: Path) -> Work:
    """The work of an update on a batch of medium length."""
    pairs = read_pairs(FAMILIES[args.family].peers[0], data)
    lengths = list(zip(pairs.src_sizes.tolist(), pairs.tgt_sizes.tolist(), strict=True))
    batches = make_batches(lengths, args.max_tokens, 3)
    batch = batches[len(batches) // 2]
    made = Training(system, system.criterion, data, args.device, args.precision, [batch])
    return observe(lambda: made.update(0))


def step(args: argparse.Namespace, system: System, data: Path) -> Work:
    """The work of a decoding step with a beam of 5."""
    cfg = configure(system, system.criterion, data, args.device, args.precision)
    task = setup_task(cfg.task)
    set_torch_seed(1)
    model = task.build_model(cfg.model).eval()
    task.load_dataset("test")
    dataset = task.dataset("test")
    sample = dataset.collater([dataset[index] for index in range(args.sentences)])
    if args.device == "cuda":
        model, sample = model.cuda(), move_to_cuda(sample)
    if args.precision == "fp16":
        model.half()
    model.make_generation_fast_(need_attn=False)

    def translate(length: int) -> Callable[[], None]:
        exactly = GenerationConfig(beam=5, max_len_a=0, max_len_b=length, min_len=length)
        generator = task.build_generator([model], exactly)

        def call() -> None:
            task.inference_step(generator, [model], sample)
            synchronize()

        return call

    short, long = (observe(translate(length)) for length in (args.steps, 2 * args.steps))
    return per_step(short, long, args.steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--precision", choices=["fp32", "fp16"], default="fp32")
    parser.add_argument("--max-tokens", type=int, default=4096, help="source plus target tokens of an update")
    parser.add_argument("--sentences", type=int, default=64, help="sentences of a decoding step (default: 64)")
    parser.add_argument("--steps", type=int, default=20, help="translate N and 2 N tokens (default: 20)", metavar="N")
    parser.add_argument("--types", type=int, help="size of the vocabulary (default: that of the family in systems.py)")
    parser.add_argument("--length", type=int, nargs=2, metavar=("LOW", "HIGH"), help="uniform source lengths, in words")
    parser.add_argument("--ours", type=shlex.split, default=[], metavar="FLAGS", help="more flags for our model")
    parser.add_argument("--work", type=Path, default=Path("runs/benchmark"), help="a folder for data")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the result goes")
    args = parser.parse_args()
    logging.disable(logging.INFO)
    family = FAMILIES[args.family]
    system = replace(family.ours, model=(*family.ours.model, *args.ours))
    types = args.types or family.types
    length = "-".join(map(str, args.length or ("real", "lengths")))
    pairs = {"train": 1000, "valid": 10, "test": args.sentences}
    data = write_data(args.work / f"launches-{types}-{args.sentences}-{length}", types, pairs, args.length)
    works = {"an update": update(args, system, data), "a decoding step": step(args, system, data)}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [work.row(system, phase, args.precision) for phase, work in works.items()]
    write_whole(args.out, json.dumps(rows, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
