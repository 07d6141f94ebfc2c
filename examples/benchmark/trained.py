"""Trained models beside other toolkits on Multi30k: speed and quality of translations to their natural end.

    python examples/benchmark/trained.py runs/multi30k --system "Transformer=fairseq:transformer.pt" \\
        --system "LWC=ours:lwc.pt" --system "LWC, bf16=ours:lwc.pt --bf16" \\
        --system "LWC, exported=exported:runs/lwc_exported" --pair LWC Transformer --pair "LWC, exported" LWC

A system is NAME=KIND:PATH, and flags of its program may follow. The kinds are:

    ours         a checkpoint; fairseq-generate with --task concat_translation, which has its own search
    fairseq      a checkpoint; fairseq-generate with --task translation, which has fairseq's search
    exported     a folder of `lwc-fairseq export`; its translate.py
    ctranslate2  a folder of CTranslate2; the only flag is the compute type, float32 (the default) or int8
    joeynmt      the YAML file of a model of JoeyNMT

In each round, every system translates the same sentences in a process of its own with one thread. Right before, it
translates the shortest sentence alone. The time of this start-up is subtracted from that of the whole command, which
leaves the time of the translation.
"""

import argparse
import html
import json
import logging
import os
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import yaml
from fairseq import options
from fairseq_cli import preprocess
from tqdm import tqdm

from lwc_fairseq.analysis.translations import Score, Translations, read_hypotheses, score, significance
from lwc_fairseq.experiments.identity import hardware, versions
from lwc_fairseq.experiments.schedule import environment
from lwc_fairseq.files import read_lines, write_whole
from lwc_fairseq.pages import markdown_table

TASKS = {"ours": "concat_translation", "fairseq": "translation"}
PACKAGES = {"exported": "onnxruntime", "ctranslate2": "ctranslate2", "joeynmt": "joeynmt"}
LONGEST = 200  # tokens of a translation: the default of fairseq and of translate.py
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONUTF8": "1"}
TIMES = [(clock, part) for clock in ("processor", "wall") for part in ("whole command", "translation")]

CTRANSLATE2 = f"""
import sys
import ctranslate2
folder, beam, size, compute_type = (*sys.argv[1:], "float32")[:4]
model = ctranslate2.Translator(folder, compute_type=compute_type, intra_threads=1)
search = {{"beam_size": int(beam), "max_batch_size": int(size), "max_decoding_length": {LONGEST}}}
for translation in model.translate_batch([line.split() for line in sys.stdin], **search):
    print(*translation.hypotheses[0])
"""
"""A program for the Python of --ctranslate2, which need not have this package."""


@dataclass(frozen=True)
class Search:
    beam: int
    batch_size: int


@dataclass(frozen=True)
class System:
    name: str
    kind: str
    path: str
    flags: list[str]

    def program(self, args: argparse.Namespace, sentences: Path, search: Search) -> tuple[list[str], Path]:
        """Return the command that translates what `choose` wrote, and the file that it reads as standard input."""
        source, flags = sentences / "test.de", ["--beam", search.beam, "--batch-size", search.batch_size]
        if self.kind in TASKS:
            words = ["fairseq-generate", sentences / "data", "--user-dir", "lwc_fairseq", "--task", TASKS[self.kind]]
            words += ["--path", self.path, "--cpu", "--num-workers", 0, *flags, *self.flags]
        elif self.kind == "exported":
            words = [sys.executable, Path(self.path) / "translate.py", "--threads", 1, *flags, *self.flags]
            source = sentences / "text.de"
        elif self.kind == "ctranslate2":
            words = [args.ctranslate2, "-c", CTRANSLATE2, self.path, search.beam, search.batch_size, *self.flags]
        else:
            config = yaml.safe_load(Path(self.path).read_text(encoding="utf-8"))
            chosen = {"beam_size": search.beam, "batch_size": search.batch_size, "max_output_length": LONGEST}
            config["testing"] = {**config["testing"], **chosen, "batch_type": "sentence"}
            written = args.work / "joeynmt.yaml"
            written.write_text(yaml.safe_dump(config), encoding="utf-8")
            words = [args.joeynmt, "-m", "joeynmt", "translate", written]
        return list(map(str, words)), source


def as_system(text: str) -> System:
    name, _, rest = text.partition("=")
    kind, _, program = rest.partition(":")
    words, kinds = shlex.split(program), (*TASKS, *PACKAGES)
    if kind not in kinds or not words:
        raise argparse.ArgumentTypeError(f"{text}: not NAME=KIND:PATH, where KIND is one of {', '.join(kinds)}")
    return System(name, kind, words[0], words[1:])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("folder", type=Path, help="what examples/multi30k/prepare.sh made")
    add("--system", type=as_system, action="append", required=True, metavar="NAME=KIND:PATH")
    add("--pair", nargs=2, action="append", metavar=("A", "B"), help="compare these (default: each with the first)")
    add("--beam", type=int, nargs="+", default=[5, 1], help="beam widths (default: 5 1)")
    batch = "the batch size, and how many sentences of the test set (default: 64 1000, and 1 200)"
    add("--batch", type=int, nargs=2, action="append", metavar=("SIZE", "SENTENCES"), help=batch)
    add("--rounds", type=int, default=3, help="how often each system translates them (default: 3)")
    add("--ctranslate2", default=sys.executable, metavar="PYTHON", help="a Python that has ctranslate2")
    add("--joeynmt", default=sys.executable, metavar="PYTHON", help="a Python that has joeynmt")
    add("--work", type=Path, default=Path("runs/benchmark/trained"), help="a folder for files that may be deleted")
    add("--out", type=Path, default=Path("examples/benchmark/results"), help="a folder for trained.md and trained.json")
    args = parser.parse_args()
    names = [system.name for system in args.system]
    if len(set(names)) < len(names):
        parser.error("--system: give each a name of its own")
    args.pair = args.pair or [[name, names[0]] for name in names[1:]]
    args.batch = args.batch or [(64, 1000), (1, 200)]
    for name in {name for pair in args.pair for name in pair}.difference(names):
        parser.error(f"--pair: no --system has the name {name}")
    return args


def choose(args: argparse.Namespace, name: str, numbers: list[int]) -> Path:
    """Write the pairs of the test set with these numbers into a folder, as text, in sub-words and binary; return it."""
    folder, data = args.work / name, args.folder / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for language in ("de", "en"):
        lines = read_lines(args.folder / "bpe" / f"test.{language}")
        write_whole(folder / f"test.{language}", "".join(f"{lines[i]}\n" for i in numbers))
    # The tokens of Multi30k are Moses', such as &quot;. An exported model writes them so itself.
    text = [html.unescape(line) for line in without_bpe(read_lines(folder / "test.de"))]
    write_whole(folder / "text.de", "".join(f"{line}\n" for line in text))
    words = ["-s", "de", "-t", "en", "--testpref", folder / "test", "--destdir", folder / "data"]
    words += ["--srcdict", data / "dict.de.txt", "--tgtdict", data / "dict.en.txt"]
    preprocess.main(options.get_preprocessing_parser().parse_args(list(map(str, words))))
    return folder


def without_bpe(lines: list[str]) -> list[str]:
    return [f"{line} ".replace("@@ ", "").strip() for line in lines]


def run(
    system: System, args: argparse.Namespace, sentences: Path, search: Search
) -> tuple[dict[str, float], Translations]:
    """Return the seconds of a process that translates, and what it wrote. Raises SystemExit if it fails."""
    command, source = system.program(args, sentences, search)
    output, log = args.work / "output.txt", args.work / "log.txt"
    with source.open("rb") as stdin, output.open("wb") as stdout, log.open("wb") as stderr:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr)
        _, status, usage = os.wait4(process.pid, 0)  # unlike Popen.wait, it tells the processor time
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    failed = f"benchmark: {system.name}: {shlex.join(command)}"
    if process.returncode:
        raise SystemExit(f"{failed}\n{log.read_text(encoding='utf-8')}")
    hypotheses, references = read_hypotheses(output), read_lines(sentences / "test.en")
    if len(hypotheses) != len(references):
        raise SystemExit(f"{failed}\n{len(hypotheses)} translations of {len(references)} sentences")
    seconds = {"processor": usage.ru_utime + usage.ru_stime, "wall": wall}
    return seconds, Translations(without_bpe(hypotheses), [without_bpe(references)])


def measure(args: argparse.Namespace, sentences: Path, shortest: Path, search: Search) -> dict:
    """Return what the systems need for the sentences with one search, and how good their translations are."""
    rounds: dict[str, list[dict]] = {system.name: [] for system in args.system}
    translated: dict[str, Translations] = {}
    for _ in range(args.rounds):
        for system in tqdm(args.system, desc=f"beam {search.beam}, batches of {search.batch_size}"):
            start, _ = run(system, args, shortest, search)
            whole, translated[system.name] = run(system, args, sentences, search)
            alone = {clock: whole[clock] - start[clock] for clock in whole}
            rounds[system.name].append({"whole command": whole, "start-up": start, "translation": alone})
    systems = {
        system.name: {
            "command": shlex.join(system.program(args, sentences, search)[0]).replace(sys.executable, "python"),
            "seconds": rounds[system.name],
            **score(translated[system.name], Score()),
        }
        for system in args.system
    }
    pairs = []
    for a, b in args.pair:
        both = zip(translated[a].hypotheses, translated[b].hypotheses, strict=True)
        p = significance([translated[b]], [translated[a]], Score())
        pairs.append({"systems": [a, b], "equal translations": sum(x == y for x, y in both), "p": p})
    return {"beam": search.beam, "batch size": search.batch_size, "systems": systems, "pairs": pairs}


def spread(numbers: list[float], digits: int) -> str:
    low, middle, high = min(numbers), statistics.median(numbers), max(numbers)
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def tables(results: dict) -> list[str]:
    """The lines of the two tables of one search: the systems, and the pairs."""
    seconds = {
        name: [[run[part][clock] for run in system["seconds"]] for clock, part in TIMES]
        for name, system in results["systems"].items()
    }
    bleu = {name: system["bleu"] for name, system in results["systems"].items()}
    header = [f"{clock}, {part}" for clock, part in TIMES]
    rows = [[name, f"{bleu[name]:.2f}", *(spread(time, 1) for time in times)] for name, times in seconds.items()]
    pairs = []
    for pair in results["pairs"]:
        a, b = pair["systems"]
        ratios = [[y / x for x, y in zip(*both, strict=True)] for both in zip(seconds[a], seconds[b], strict=True)]
        quality = [f"{bleu[a] - bleu[b]:+.2f}", f"{pair['p']:.3f}", f"{pair['equal translations']}"]
        pairs.append([f"{a} ÷ {b}", *(spread(ratio, 2) for ratio in ratios), *quality])
    return [
        f"## Beam {results['beam']}, batches of {results['batch size']}, {results['sentences']} sentences",
        *("", *markdown_table(["seconds", "BLEU", *header], rows)),
        *("", *markdown_table(["speed", *header, "BLEU", "p", "equal translations"], pairs), ""),
    ]


def package(args: argparse.Namespace, kind: str) -> str:
    """The package that runs a kind of system, and its version."""
    python = getattr(args, kind, sys.executable)
    code = f"from importlib.metadata import version; print(version('{PACKAGES[kind]}'))"
    return f"{PACKAGES[kind]} {subprocess.check_output([python, '-c', code], text=True).strip()}"


def main() -> None:
    args = parse()
    logging.disable(logging.INFO)
    os.environ.update(environment(None) | ENVIRONMENT)
    packages = [package(args, kind) for kind in PACKAGES if kind in {system.kind for system in args.system}]
    about = {
        "date": date.today().isoformat(),
        "machine": hardware(),
        "versions": ", ".join([versions(), f"sacrebleu {version('sacrebleu')}", *packages]),
        "command": shlex.join(["python", *sys.argv]),
        "environment": ENVIRONMENT,
    }
    sizes = [len(line.split()) for line in read_lines(args.folder / "bpe" / "test.de")]
    shortest = choose(args, "shortest", [sizes.index(min(sizes))])
    for system in args.system:  # what cannot run is found at once, and all files are read before time counts
        run(system, args, shortest, Search(1, 1))
    about["searches"] = []
    for size, wanted in args.batch:
        count = min(wanted, len(sizes))
        sentences = choose(args, f"first-{count}", list(range(count)))
        for beam in args.beam:
            results = measure(args, sentences, shortest, Search(beam, size))
            about["searches"].append({"sentences": count, **results})
    page = [
        "# Trained models on Multi30k, German to English",
        "",
        f"Medians of {args.rounds} rounds, with the range in brackets; one thread. {about['date']}, "
        f"{about['machine']}, {about['versions']}. The speed of a pair is its first system's ÷ its second's. BLEU is "
        "of tokenised, lower-cased text. p is that of a two-sided randomization test of the difference of BLEU; it "
        "says nothing if only a few translations differ.",
        *("", *(line for results in about["searches"] for line in tables(results))),
        *("```", about["command"], "```", ""),
    ]
    args.out.mkdir(parents=True, exist_ok=True)
    write_whole(args.out / "trained.json", json.dumps(about, indent=1, ensure_ascii=False))
    write_whole(args.out / "trained.md", "\n".join(page))
    print("\n".join(page))


if __name__ == "__main__":
    main()
