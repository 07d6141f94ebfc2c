"""Measure how speed changes with sentence length, batch size, beam, depth or vocabulary.

    python examples/benchmark/scaling.py --family FAMILY --phase train|generate --over WHAT [--values N ...]

Runs the benchmark for each value, and writes a table, a JSON file and a plot of the target tokens a second of each
system. Other flags go to benchmark.py.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure
from tqdm import tqdm

from lwc_fairseq.files import write_whole
from lwc_fairseq.pages import markdown_table
from systems import FAMILIES


def translated(batch: int) -> list:
    """The flags for translating with a batch size: at least two batches."""
    return ["--batch-size", batch, "--sentences", max(256, 2 * batch)]


OVER = {  # (the flags of the benchmark for a value, the values)
    "length": (lambda n: ["--length", n, n], (10, 25, 50, 100, 200, 500)),
    "batch": (lambda n: ["--max-tokens", n, *translated(max(1, n // 50))], (250, 1000, 4000, 16000)),
    "beam": (lambda n: ["--beam", n], (1, 2, 5, 10)),
    "types": (lambda n: ["--types", n], (1000, 4000, 16000, 32000)),
}
DEPTH = {  # the same for depth, by family
    "lwc": (lambda n: ["--ours", f"--layers {n}", "--peer", stock_depth(n)], (6, 10, 14, 22)),
    "deepatt": (lambda n: ["--ours", f"--attention-layers {n}"], (1, 3, 5)),
}
UNITS = {
    "length": "source words of a sentence",
    "batch": "tokens of an update, both sides (50 × sentences translated)",
    "beam": "beam",
    "types": "types",
}
UNITS_OF_DEPTH = {
    "lwc": "layers (of fairseq's transformer: of both sides together)",
    "deepatt": "attention layers of DeepAtt",
}


def stock_depth(layers: int) -> str:
    return f"--encoder-layers {layers // 2} --decoder-layers {layers // 2}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, required=True)
    parser.add_argument("--phase", choices=["train", "generate"], required=True)
    parser.add_argument("--over", choices=[*OVER, "depth"], required=True)
    parser.add_argument("--values", type=int, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("examples/benchmark/results"))
    args, more = parser.parse_known_args()
    if args.over == "depth" and args.family not in DEPTH:
        parser.error(f"--over depth is for --family {' or '.join(DEPTH)}: {args.family} has one depth")
    flags, values = DEPTH[args.family] if args.over == "depth" else OVER[args.over]
    values = args.values or values
    command = [sys.executable, str(Path(__file__).with_name("benchmark.py")), "--family", args.family]
    of_values = {}
    for value in tqdm(values, desc=f"over {args.over}"):
        with tempfile.TemporaryDirectory() as folder:
            benchmark = [*command, "--phase", args.phase, "--out", folder, *map(str, flags(value)), *more]
            subprocess.run(benchmark, check=True, stdout=subprocess.DEVNULL)
            (result,) = Path(folder).glob("*.json")
            of_values[value] = json.loads(result.read_text(encoding="utf-8"))
    write(args, of_values)


def write(args: argparse.Namespace, of_values: dict[int, dict]) -> None:
    names = [system["name"] for system in next(iter(of_values.values()))["systems"]]
    unit = UNITS_OF_DEPTH[args.family] if args.over == "depth" else UNITS[args.over]
    if args.over == "depth":
        names = [name.partition(",")[0] for name in names]  # without their usual depth
    speeds = {
        value: [median(system["tokens a second"]) for system in about["systems"]] for value, about in of_values.items()
    }
    about = next(iter(of_values.values()))
    name = f"{args.family}_{args.phase}_over_{args.over}"
    rows = [[f"{value:,}", *(f"{speed:,.0f}" for speed in speeds[value])] for value in speeds]
    lines = [f"# {args.family}, {args.phase}: target tokens a second", "", *markdown_table([unit, *names], rows), ""]
    lines.append(f"{about['precision']}. {about['date']}, {about['device']}, {about['versions']}.")
    lines += ["", "```", shlex.join(["python", *sys.argv]), "```", ""]
    args.out.mkdir(parents=True, exist_ok=True)
    write_whole(args.out / f"{name}.json", json.dumps(of_values, indent=1))
    write_whole(args.out / f"{name}.md", "\n".join(lines))
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for number, (system, marker) in enumerate(zip(names, "os^Dv<", strict=False)):
        axes.plot(list(speeds), [row[number] for row in speeds.values()], marker=marker, label=system)
    axes.set(xscale="log", xlabel=unit, ylabel="target tokens a second", ylim=(0, None))
    axes.set_xticks(list(speeds), [f"{value:,}" for value in speeds])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(args.out / f"{name}.png", dpi=120)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
