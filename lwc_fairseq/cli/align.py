"""`lwc-fairseq align` and `aer`: word alignments and their error rate."""

import argparse
import sys
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import import_plugins, make_place, write_whole
from ..pages import markdown_table
from .arguments import add_checkpoint, add_first, add_user_dir, check_first, number_or_all


def add_align(commands) -> None:
    align = commands.add_parser(
        "align",
        help="word alignments from attention",
        description="Force a model to produce the references of a test set, and link each target word to the source "
        "word that it attends to most. Each line has the links i-j of a sentence, between source word i and target "
        "word j, counted from 0. Links are between words, not sub-words: a source word has the weight of its sub-words "
        "together, a target word the mean of its sub-words. Sub-words are those of subword-nmt (@@) or "
        "sentencepiece (U+2581).",
    )
    add = align.add_argument
    add_checkpoint(align)
    add("--data", required=True, help="a folder that fairseq-preprocess wrote")
    add_user_dir(align)
    add("--subset", default="test", metavar="NAME", help="the subset of the data (default: test)")
    add("--layer", type=number_or_all, default="all", metavar="K", help="layer, from 0, or all for the mean (default)")
    add("--head", type=number_or_all, default="all", metavar="H", help="head, from 0, or all for the mean (default)")
    add("--out", type=Path, metavar="FILE", help="output file (default: standard output)")
    add("--gold", type=Path, metavar="FILE", help="gold alignments; print each layer's error rate instead of links")
    add_first(align)
    align.set_defaults(call=align_command)


def add_aer(commands) -> None:
    aer = commands.add_parser(
        "aer",
        help="alignment error rate",
        description="Print alignment error rate, precision and recall over all sentences. Gold links are "
        "i-j (sure) and ipj or i?j (possible). All links are between words, not sub-words.",
    )
    aer.add_argument("hypothesis", type=Path, metavar="HYP", help="links i-j, counted from 0, one sentence per line")
    aer.add_argument("gold", type=Path, metavar="GOLD", help="gold links, one sentence per line")
    add_first(aer)
    aer.set_defaults(call=aer_command)


def align_command(args: argparse.Namespace) -> int:
    from ..analysis.alignment import layer_error_rates, links, pharaoh, read_alignments
    from ..analysis.attention import force, load

    check_first(args)
    if args.gold and (args.out or args.layer is not None or args.head is not None):
        raise UserError("--gold prints every layer: leave out --out, --layer and --head, or leave out --gold")
    gold = read_alignments(args.gold, args.gold_first) if args.gold else None  # before the model, which takes longer
    if args.out:
        make_place(args.out, inputs=[Path(args.checkpoint)])
    import_plugins(args.user_dir)
    sentences = force(*load(args.checkpoint, args.data), args.subset)
    if gold is not None:
        rates = layer_error_rates(sentences, gold, args.gold)
        rows = [[name, *rate.percentages()] for name, rate in rates.items()]
        print("\n".join(markdown_table(["layer", "AER", "precision", "recall"], rows)))
        return 0
    lines = {sentence.number: pharaoh(links(sentence, args.layer, args.head)) for sentence in sentences}
    text = "".join(lines[number] + "\n" for number in sorted(lines))
    if args.out is None:
        sys.stdout.write(text)
    else:
        write_whole(args.out, text)
    return 0


def aer_command(args: argparse.Namespace) -> int:
    from ..analysis.alignment import error_rate, read_alignments, read_links

    rate = error_rate(read_links(args.hypothesis), read_alignments(args.gold, args.gold_first))
    print("AER {}, precision {}, recall {}".format(*rate.percentages()))
    return 0
