"""`lwc-fairseq attention`: pictures of a model's attention."""

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import import_plugins, make_place
from .arguments import add_model, add_subwords, number_or_all, utf8
from .translate import SUBWORDS_HINT, warn


def add_attention(commands) -> None:
    attention = commands.add_parser(
        "attention",
        help="pictures of attention",
        description="Draw heat maps of a model's attention while it produces a translation: over the source and, to "
        "the right of a line, over the target so far (mixed attention, self-attention) or the reverse translation. "
        "Each row is the step that produces a token. Tokens are sub-words, if the data has sub-words. The columns of a "
        "right-to-left language run from right to left.",
    )
    add = attention.add_argument
    add_model(attention)
    add(
        "--source",
        required=True,
        type=utf8,
        help="a sentence, already tokenized as the data, with spaces around punctuation",
    )
    add("--target", type=utf8, help="its translation (default: the model's own)")
    add_subwords(attention, "--source and --target are")
    add(
        "--layer",
        type=lambda text: text if text == "mean" else number_or_all(text),
        metavar="K",
        help="layer, from 0, or all (default), or mean for the mean over layers",
    )
    add("--head", type=number_or_all, metavar="H", help="head, from 0, or all for the mean (default)")
    add("--out", required=True, type=Path, metavar="FILE", help="output file, .png, .svg, .pdf or .html")
    add("--weights", type=Path, metavar="FILE.npz", help="also write the weights")
    attention.set_defaults(call=attention_command)


def attention_command(args: argparse.Namespace) -> int:
    from ..analysis.attention import load, panels, sentences
    from ..analysis.picture import check_format, draw, save_weights

    check_format(args.out)  # before the model, which takes longer to load
    make_place(args.out)
    if args.weights:
        make_place(args.weights, "--weights")
    split = segmenter(args.bpe_codes, args.sentencepiece_model)
    source, target = split(args.source), split(args.target) if args.target is not None else None
    import_plugins(args.user_dir)
    model, task = load(args.checkpoint, args.data)
    texts = {"--source": (source, task.source_dictionary), "--target": (target or "", task.target_dictionary)}
    for option, (text, dictionary) in texts.items():
        if missing := dict.fromkeys(token for token in text.split() if token not in dictionary):
            hint = "" if args.bpe_codes or args.sentencepiece_model else SUBWORDS_HINT
            warn(f"{option}: not in the vocabulary, so the model reads <unk>: {' '.join(missing)}{hint}")
    made = panels(model, task, source, target, args.layer, args.head)
    print(f"drawing {len(made)} layers of {len(made[0].rows)} by {len(made[0].columns)} tokens", file=sys.stderr)
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it logs each table of a font in a .pdf
    draw(made, args.out, sentences(made[0], task))
    if args.weights:
        save_weights(made, args.weights)
    print("wrote " + ", ".join(str(path) for path in (args.out, args.weights) if path))
    return 0


def segmenter(bpe_codes: Path | None, sentencepiece_model: Path | None) -> Callable[[str], str]:
    """Return a function that splits the words of a text into sub-words; without files, it leaves the text as it is.

    Raises:
        UserError: a file does not exist or is invalid, or sentencepiece is not installed.
    """
    from ..preparation import make_subwords

    for bpe, path in (("subword_nmt", bpe_codes), ("sentencepiece", sentencepiece_model)):
        if path:
            if not path.is_file():
                raise UserError(f"{path}: no such file")
            return make_subwords(bpe, str(path)).encode
    return str
