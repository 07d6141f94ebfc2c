"""The command `lwc-fairseq`: tables of runs, averaged checkpoints, and what models do."""

import argparse
import logging
import shlex
import signal
import sys
from pathlib import Path

import lwc_fairseq  # noqa: F401  (registers the models)
from lwc_fairseq_compat import UserError

from .analysis.alignment import Gold, Link, check_inside, error_rate, links, pharaoh, read_alignments, read_links
from .analysis.attention import force, load
from .analysis.compare import GROUPS, Sentences, compare, part_of_speech_bleu
from .analysis.compare import markdown as comparison_page
from .analysis.compare import write as write_comparison
from .analysis.picture import draw, panels, save_weights
from .analysis.report import write_report
from .analysis.score import bleu, read_hypotheses, read_lines
from .experiments import results, runner
from .experiments.average import average_checkpoints, newest_epochs
from .experiments.job import Settings
from .experiments.table import load_profile, load_table
from .files import write_whole


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="lwc-fairseq", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_table(commands)
    add_average(commands)
    add_align(commands)
    add_aer(commands)
    add_compare(commands)
    add_attention(commands)
    add_report(commands)
    return top


def add_table(commands) -> None:
    table = commands.add_parser(
        "table",
        help="train, translate and score every row of a table",
        description="Train every row of a table file, translate the test set, score, and write table.md, table.json "
        "and for a curve table.png. Stopped and started again, it goes on where it was.",
    )
    table.add_argument("table", type=Path, metavar="TABLE.yaml", help="one of examples/tables, or your own")
    table.add_argument("--data", required=True, help="a folder that fairseq-preprocess wrote")
    table.add_argument("--out", required=True, type=Path, help="a folder for checkpoints, logs and results")
    table.add_argument("--profile", type=Path, metavar="FILE.yaml", help="other sizes and training, for smaller data")
    table.add_argument("--rows", nargs="+", metavar="NAME", help="these rows alone, and those that they need")
    table.add_argument("--seeds", type=positive, default=1, metavar="N", help="runs of each row (default: 1)")
    table.add_argument("--train", type=shlex.split, default=[], metavar="FLAGS", help="more flags of fairseq-train")
    table.add_argument("--generate", type=shlex.split, default=[], metavar="FLAGS", help="and of fairseq-generate")
    table.add_argument(
        "--references", nargs="+", type=Path, default=[], metavar="FILE", help="score against these, line by line"
    )
    table.add_argument("--gold", type=Path, metavar="FILE", help="alignments of the test set, for tables of AER")
    add_first(table)
    table.add_argument(
        "--parallel", type=positive, metavar="N", help="runs side by side (default: one for each GPU, or one)"
    )
    how = table.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="print the shell commands, one a line, and run nothing")
    how.add_argument("--collect", action="store_true", help="make the table of what there is, and run nothing")
    table.set_defaults(call=make_table)


def add_average(commands) -> None:
    average = commands.add_parser(
        "average",
        help="average checkpoints",
        description="Write a checkpoint whose weights are the mean of several ones of one training run.",
    )
    average.add_argument("inputs", nargs="+", type=Path, metavar="PATH", help="checkpoints, or with --last a folder")
    average.add_argument("--last", type=positive, metavar="N", help="take the last N epochs' checkpoints of the folder")
    average.add_argument("--out", required=True, type=Path, metavar="FILE")
    average.set_defaults(call=average_command)


def add_align(commands) -> None:
    align = commands.add_parser(
        "align",
        help="word alignments from attention",
        description="Force a model to translate a test set as its references do, and link each target word to the "
        "source word that it attends to most: a line a sentence, links i-j of source and target words, from 0. "
        "Sub-words (@@) count as words.",
    )
    add_model(align)
    align.add_argument("--subset", default="test", help="which part of it (default: test)")
    align.add_argument("--layer", type=number_or_all, default="all", metavar="K", help="from 0, or all: their mean")
    align.add_argument("--head", type=number_or_all, default="all", metavar="H", help="from 0, or all: their mean")
    align.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")
    align.add_argument("--gold", type=Path, metavar="FILE", help="print the error rate of every layer instead")
    add_first(align)
    align.set_defaults(call=align_command)


def add_aer(commands) -> None:
    aer = commands.add_parser(
        "aer",
        help="alignment error rate",
        description="Alignment error rate, precision and recall of links against gold links: i-j sure, ipj and i?j "
        "possible; sums over all sentences.",
    )
    aer.add_argument("hypothesis", type=Path, metavar="HYP", help="links i-j, from 0, a line a sentence")
    aer.add_argument("gold", type=Path, metavar="GOLD")
    add_first(aer)
    aer.set_defaults(call=aer_command)


def add_attention(commands) -> None:
    attention = commands.add_parser(
        "attention",
        help="pictures of attention",
        description="Heat maps of what a model attends to while it produces a translation: the source and, right of "
        "a line, the target so far (mixed or self-attention) or the reverse translation. A row is the step that "
        "produces a token.",
    )
    add_model(attention)
    attention.add_argument("--source", required=True, help="a sentence, in tokens as in the data")
    attention.add_argument("--target", help="its translation; left out: the model's own")
    attention.add_argument("--layer", type=number_or_all, metavar="K", help="from 0, or all, side by side (default)")
    attention.add_argument("--head", type=number_or_all, metavar="H", help="from 0, or all: their mean (default)")
    attention.add_argument("--out", required=True, type=Path, metavar="FILE", help="a .png, .svg or .html")
    attention.add_argument("--weights", type=Path, metavar="FILE.npz", help="write the numbers as well")
    attention.set_defaults(call=attention_command)


def add_report(commands) -> None:
    report = commands.add_parser(
        "report",
        help="a finished table as one page",
        description="One page of HTML that needs no network: results, curve, groups of source length, the sentences on "
        "which rows differ most, attention.",
    )
    report.add_argument("folder", type=Path, metavar="DIR", help="what `table` wrote to")
    report.add_argument("--out", type=Path, metavar="FILE.html", help="default: DIR/report.html")
    report.set_defaults(call=report_command)


def add_compare(commands) -> None:
    compare = commands.add_parser(
        "compare",
        help="translations of several systems side by side",
        description="Scores with sacrebleu's signatures, a paired bootstrap test against the first system, groups of "
        "source length, parts of speech, and the sentences on which systems differ most.",
    )
    compare.add_argument(
        "systems", nargs="+", type=named_path, metavar="NAME=FILE", help="text, or the output of fairseq-generate"
    )
    compare.add_argument(
        "--ref", action="append", required=True, type=Path, metavar="FILE", help="reference translations; repeatable"
    )
    compare.add_argument("--src", type=Path, metavar="FILE", help="the source, for groups by length")
    compare.add_argument(
        "--groups", type=growing, default=GROUPS, metavar="N,N,...", help="lengths at which a group begins"
    )
    compare.add_argument("--tags", action="append", default=[], metavar="TAG,...", help="as NN,VB; repeatable")
    compare.add_argument("--ref-tags", type=Path, metavar="FILE", help="a tag for each word of the (first) reference")
    compare.add_argument(
        "--system-tags", action="append", type=named_path, default=[], metavar="NAME=FILE", help="and of a system"
    )
    compare.add_argument("--differences", type=positive, default=10, metavar="N", help="sentences (default: 10)")
    compare.add_argument("--out", type=Path, metavar="DIR", help="write compare.md, compare.json and lengths.png")
    compare.set_defaults(call=compare_command)


def growing(text: str) -> list[int]:
    numbers = [positive(part) for part in text.split(",")]
    if numbers != sorted(set(numbers)):
        raise argparse.ArgumentTypeError(f"{text}: give growing lengths")
    return numbers


def named_path(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text}: give a name and a file, as ours=hypotheses.txt")
    return name, Path(path)


def add_model(command) -> None:
    command.add_argument("checkpoint", help="a model of this plugin, or fairseq's Transformer")
    command.add_argument("--data", required=True, help="a folder that fairseq-preprocess wrote")


def add_first(command) -> None:
    command.add_argument(
        "--gold-first", type=int, choices=(0, 1), default=0, help="number of the first word in GOLD (default: 0)"
    )


def number_or_all(text: str) -> int | None:
    if text == "all" or text.isdecimal():
        return None if text == "all" else int(text)
    raise argparse.ArgumentTypeError(f"{text}: give a number from 0, or all")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


def make_table(args: argparse.Namespace) -> int:
    """Returns the exit status: 1 if a row failed."""
    settings = Settings(
        table=load_table(args.table, args.rows),
        profile=load_profile(args.profile),
        data=args.data,
        out=args.out,
        train=tuple(args.train),
        generate=tuple(args.generate),
    )
    bleu(settings.score)  # before hours of training
    jobs = settings.jobs(args.seeds)
    if args.dry_run:
        print("\n".join(line for job in jobs for line in job.shell_lines()))
        return 0
    if (settings.table.metric == "aer") != bool(args.gold):
        needs = "needs --gold, the alignments of the test set" if not args.gold else "has no use for --gold"
        raise UserError(f"{args.table} {needs}")
    references = [read_lines(path) for path in args.references]
    gold = read_alignments(args.gold, args.gold_first) if args.gold else None
    runner.check_out(args.out)
    failures = {} if args.collect else runner.Runner(runner.devices(args.parallel)).run(jobs)
    found = results.collect(settings, jobs, failures, references, gold)
    runner.announce(failures)
    written = results.write(settings, found, args.seeds, ran=not args.collect)
    print(written[0].read_text(encoding="utf-8"))
    print("wrote " + ", ".join(map(str, written)), file=sys.stderr)
    return 1 if failures else 0


def average_command(args: argparse.Namespace) -> int:
    paths = args.inputs
    if args.last:
        if len(paths) != 1:
            raise UserError(f"--last {args.last}: give one folder, not {len(paths)} paths")
        paths = newest_epochs(paths[0], args.last)
    average_checkpoints(paths, args.out)
    print(f"wrote {args.out}, the mean of {', '.join(map(str, paths))}")
    return 0


def align_command(args: argparse.Namespace) -> int:
    if args.gold is not None:
        if args.out or args.layer is not None or args.head is not None:
            raise UserError("--gold shows every layer: leave out --out, --layer and --head, or leave out --gold")
        print_error_rates(args, read_alignments(args.gold, args.gold_first))
        return 0
    found = {one.number: pharaoh(links(one, args.layer, args.head)) for one in force(*forced(args))}
    text = "".join(found[number] + "\n" for number in sorted(found))
    if args.out is None:
        sys.stdout.write(text)
    else:
        write_whole(args.out, text)
    return 0


def forced(args: argparse.Namespace) -> tuple[str, str, str]:
    return args.checkpoint, args.data, args.subset


def print_error_rates(args: argparse.Namespace, gold: list[Gold]) -> None:
    """A table of layers, and of the mean of their weights."""
    found: dict[str, dict[int, set[Link]]] = {}
    for one in force(*forced(args)):
        if one.number < len(gold):
            check_inside(gold[one.number], one, f"{args.gold}, line {one.number + 1}")
        for layer in [*range(len(one.attentions)), None]:
            name = "all" if layer is None else str(layer)
            found.setdefault(name, {})[one.number] = set(links(one, layer, None))
    print("| layer | AER | precision | recall |\n|---|---|---|---|")
    for name, of_layer in found.items():
        rate = error_rate([of_layer[number] for number in sorted(of_layer)], gold)
        print(f"| {name} | {100 * rate.aer:.2f} | {100 * rate.precision:.2f} | {100 * rate.recall:.2f} |")


def aer_command(args: argparse.Namespace) -> int:
    rate = error_rate(read_links(args.hypothesis), read_alignments(args.gold, args.gold_first))
    print(f"AER {100 * rate.aer:.2f}, precision {100 * rate.precision:.2f}, recall {100 * rate.recall:.2f}")
    return 0


def attention_command(args: argparse.Namespace) -> int:
    model, task = load(args.checkpoint, args.data)
    made = panels(model, task, args.source, args.target, args.layer, args.head)
    draw(made, args.out, f"{args.source}  →  {' '.join(made[0].rows[:-1])}")
    if args.weights:
        save_weights(made, args.weights)
    print("wrote " + ", ".join(str(path) for path in (args.out, args.weights) if path))
    return 0


def report_command(args: argparse.Namespace) -> int:
    out = args.out or args.folder / "report.html"
    write_report(args.folder, out)
    print(f"wrote {out}")
    return 0


def compare_command(args: argparse.Namespace) -> int:
    systems = {name: read_hypotheses(path) for name, path in args.systems}
    if len(systems) < len(args.systems):
        raise UserError("two systems have the same name: give each one of its own")
    source = read_lines(args.src) if args.src else None
    sentences = Sentences(systems, [read_lines(path) for path in args.ref], source)
    found = compare(sentences, args.groups, args.differences)
    if args.tags:
        found.parts = parts_of_speech(args, sentences)
    print(comparison_page(found), end="")
    if args.out:
        runner.check_out(args.out)
        print("wrote " + ", ".join(map(str, write_comparison(found, args.out))), file=sys.stderr)
    return 0


def parts_of_speech(args: argparse.Namespace, sentences: Sentences) -> dict[str, dict[str, list[float]]]:
    """By the tags that were asked for; of the systems that have tags."""
    tagged = {name: read_lines(path) for name, path in args.system_tags}
    unknown = sorted(tagged.keys() - sentences.systems.keys())
    if not args.ref_tags or not tagged or unknown:
        what = f"no system is called {unknown[0]}" if unknown else "--ref-tags and --system-tags are needed"
        raise UserError(f"--tags: {what}")
    reference = "the reference"
    texts = {**{name: sentences.systems[name] for name in tagged}, reference: sentences.references[0]}
    tagged[reference] = read_lines(args.ref_tags)
    return {tags: part_of_speech_bleu(tags.split(","), texts, tagged, reference) for tags in args.tags}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # as Ctrl-C: runs are ended, too
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # it tells of each step of a test
    args = parser().parse_args()
    try:
        sys.exit(args.call(args))
    except UserError as error:
        sys.exit(f"lwc-fairseq: error: {error}")
    except KeyboardInterrupt:
        sys.exit("lwc-fairseq: stopped; the same command goes on from here")
