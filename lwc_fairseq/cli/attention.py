"""`lwc-fairseq attention`: pictures of a model's attention."""

import argparse
from pathlib import Path

from ..analysis.attention import load
from ..analysis.panels import MEAN, panels
from ..analysis.picture import draw, save_weights
from ..plugins import import_plugins
from .arguments import add_model, number_or_all


def add_attention(commands) -> None:
    attention = commands.add_parser(
        "attention",
        help="pictures of attention",
        description="Draw heat maps of a model's attention while it produces a translation: over the source and, to "
        "the right of a line, over the target so far (mixed attention, self-attention) or the reverse translation. "
        "Each row is the step that produces a token.",
    )
    add_model(attention)
    attention.add_argument("--source", required=True, help="a sentence, tokenized as the data")
    attention.add_argument("--target", help="its translation (default: the model's own)")
    attention.add_argument(
        "--layer",
        type=layer_choice,
        metavar="K",
        help="layer, from 0, or all (default), or mean for the mean over layers",
    )
    attention.add_argument(
        "--head", type=number_or_all, metavar="H", help="head, from 0, or all for the mean (default)"
    )
    attention.add_argument("--out", required=True, type=Path, metavar="FILE", help="output file, .png, .svg or .html")
    attention.add_argument("--weights", type=Path, metavar="FILE.npz", help="also write the weights")
    attention.set_defaults(call=attention_command)


def layer_choice(text: str) -> int | str | None:
    return MEAN if text == MEAN else number_or_all(text)


def attention_command(args: argparse.Namespace) -> int:
    import_plugins(args.user_dir)
    model, task = load(args.checkpoint, args.data)
    made = panels(model, task, args.source, args.target, args.layer, args.head)
    draw(made, args.out, f"{args.source}  →  {' '.join(made[0].rows[:-1])}")
    if args.weights:
        save_weights(made, args.weights)
    print("wrote " + ", ".join(str(path) for path in (args.out, args.weights) if path))
    return 0
