"""`lwc-fairseq compare`: a comparison of several systems' translations."""

import argparse
import sys
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import make_folder, read_lines
from .arguments import growing, named_path, positive


def add_compare(commands) -> None:
    compare = commands.add_parser(
        "compare",
        help="compare translations of several systems",
        description="Print scores with sacrebleu's signatures, a two-sided paired test against the first system, "
        "scores by source length, by frequency of words and by part of speech, repetition and omission, errors at both "
        "ends of sentences, and the sentences on which the systems differ most.",
    )
    add = compare.add_argument
    add("systems", nargs="+", type=named_path, metavar="NAME=FILE", help="text, or fairseq-generate's output")
    add("--ref", action="append", required=True, type=Path, metavar="FILE", help="references; can be repeated")
    add("--src", type=Path, metavar="FILE", help="the source, for scores by source length")
    add("--groups", type=growing, metavar="N,N,...", help="source lengths at which groups begin")
    add("--ter", action="store_true", help="also compute TER, the translation edit rate")
    add(
        "--comet", action="store_true", help="also compute COMET, which needs unbabel-comet, --src and detokenised text"
    )
    add("--comet-model", metavar="MODEL", help="a name, or a checkpoint's path (default: Unbabel/wmt22-comet-da)")
    add(
        "--lexicon",
        nargs=2,
        type=Path,
        metavar=("TRAIN.SRC", "TRAIN.TGT"),
        help="also count untranslated words, by a lexicon from this parallel text, which needs NLTK and --src",
    )
    add("--tags", action="append", type=tag_list, default=[], metavar="TAG,...", help="such as NN,VB; can be repeated")
    add("--ref-tags", type=Path, metavar="FILE", help="tags of the words of the (first) reference")
    add(
        "--system-tags", action="append", type=named_path, default=[], metavar="NAME=FILE", help="the same for a system"
    )
    add(
        "--train-text",
        type=Path,
        metavar="FILE",
        help="the training set's target side, for scores by frequency of words",
    )
    add("--differences", type=positive, default=10, metavar="N", help="sentences to show (default: 10)")
    add("--out", type=Path, metavar="DIR", help="write compare.html, compare.md, compare.json and pictures")
    compare.set_defaults(call=compare_command)


def compare_command(args: argparse.Namespace) -> int:
    from ..analysis.adequacy import read_bitext
    from ..analysis.comparison import GROUPS, Sentences, compare, markdown
    from ..analysis.comparison_page import write_comparison
    from ..analysis.frequency import count_words
    from ..analysis.translations import COMET_MODEL, part_of_speech_bleu, read_hypotheses

    idle = {
        "--ref-tags": ("--tags", args.ref_tags and not args.tags),
        "--system-tags": ("--tags", args.system_tags and not args.tags),
        "--comet-model": ("--comet", args.comet_model and not args.comet),
        "--groups": ("--src", args.groups and not args.src),
        "--lexicon": ("--src", args.lexicon and not args.src),
    }
    for option, (needed, is_idle) in idle.items():
        if is_idle:
            raise UserError(f"{option} has no effect without {needed}: add {needed}, or leave {option} out")
    if args.comet and not args.src:
        raise UserError("--comet: --src is needed, because COMET reads the source")
    check_different([name for name, _ in args.systems], "NAME=FILE")
    systems = {name: read_hypotheses(path) for name, path in args.systems}
    source = read_lines(args.src) if args.src else None
    sentences = Sentences(systems, [read_lines(path) for path in args.ref], source)
    print(f"comparing {len(systems)} systems on {len(sentences.references[0])} lines", file=sys.stderr)
    comet_model = (args.comet_model or COMET_MODEL) if args.comet else None
    bitext = read_bitext(*args.lexicon) if args.lexicon else None
    frequencies = count_words(args.train_text) if args.train_text else None
    if args.out:
        make_folder(args.out)
    parts = {}
    if args.tags:
        sentences.check()
        tagged = {name: (systems[name], tags) for name, tags in tags_of_systems(args).items()}
        reference = sentences.references[0], read_lines(args.ref_tags)
        parts = {",".join(tags): part_of_speech_bleu(tags, tagged, [reference]) for tags in args.tags}
    comparison = compare(sentences, args.groups or GROUPS, args.differences, args.ter, comet_model, bitext, frequencies)
    comparison.parts = parts
    print(markdown(comparison), end="")
    if args.out:
        written = write_comparison(comparison, sentences, args.out)
        print("wrote " + ", ".join(map(str, written)), file=sys.stderr)
    return 0


def tag_list(text: str) -> list[str]:
    """Split tags at commas."""
    tags = text.split(",")
    if not all(tags):
        raise argparse.ArgumentTypeError(f"{text!r}: give tags with one comma between them, such as NN,VB")
    return tags


def tags_of_systems(args: argparse.Namespace) -> dict[str, list[str]]:
    """Read the lines of tags, by the name of their system. Raises UserError if the reference has no tags, no system has
    tags, or an unknown system has tags."""
    check_different([name for name, _ in args.system_tags], "--system-tags")
    tags = {name: read_lines(path) for name, path in args.system_tags}
    unknown = sorted(tags.keys() - dict(args.systems).keys())
    if not args.ref_tags or not tags or unknown:
        what = f"no system is called {unknown[0]}" if unknown else "--ref-tags and --system-tags are needed"
        raise UserError(f"--tags: {what}")
    return tags


def check_different(names: list[str], where: str) -> None:
    """Raises UserError if a name occurs twice."""
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{where}: two systems have the same name, {repeated[0]}: give each system its own name")
