"""`lwc-fairseq translate`: translates plain text."""

import argparse
import logging
import sys
from collections.abc import Iterator
from itertools import islice

import torch
from tqdm import tqdm

from ..hub import load
from ..plugins import import_plugins
from .arguments import add_user_dir, positive


def add_translate(commands) -> None:
    translate = commands.add_parser(
        "translate",
        help="translate plain text",
        description="Translate each line of standard input, and write one line for each to standard output. The file "
        "text.yaml in the folder of the data, which the recipes write, says how to prepare the text. Without this "
        "file, the text must be tokenized and split into sub-words as the data.",
    )
    translate.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT", help="a model; several are an ensemble")
    translate.add_argument("--data", metavar="DIR", help="the folder of binary data (default: that of the training)")
    translate.add_argument("--beam", type=positive, default=5, metavar="N", help="beam width (default: 5)")
    translate.add_argument("--lenpen", type=float, default=1.0, metavar="ALPHA", help="length penalty (default: 1)")
    translate.add_argument(
        "--gnmt-length-penalty", action="store_true", help="divide by the length penalty of Wu et al. (2016)"
    )
    translate.add_argument(
        "--batch-size", type=positive, default=64, metavar="N", help="sentences translated at a time (default: 64)"
    )
    translate.add_argument(
        "--buffer-size",
        type=positive,
        default=1024,
        metavar="N",
        help="lines read before they are translated, to sort them by length (default: 1024)",
    )
    translate.add_argument(
        "--detokenize", action="store_true", help="write raw text instead of tokens; what was lower-cased stays so"
    )
    translate.add_argument("--cpu", action="store_true", help="do not use a GPU")
    add_user_dir(translate)
    translate.set_defaults(call=translate_command)


def translate_command(args: argparse.Namespace) -> int:
    import_plugins(args.user_dir)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    sys.stdin.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    sys.stdout.reconfigure(encoding="utf-8")
    settings = {"gnmt_length_penalty": True} if args.gnmt_length_penalty else {}
    model = load(
        args.checkpoints, args.data, detokenize=args.detokenize, batch_size=args.batch_size, max_tokens=None, **settings
    )
    if torch.cuda.is_available() and not args.cpu:
        model.cuda()
    lines = (line.removesuffix("\n") for line in sys.stdin)
    with tqdm(desc="translating", unit=" lines", mininterval=5) as progress:
        for buffer in chunks(lines, args.buffer_size):
            for text in model.translate(buffer, beam=args.beam, lenpen=args.lenpen):
                print(text)
            sys.stdout.flush()
            progress.update(len(buffer))
    return 0


def chunks(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """Yield lists of at most `size` lines."""
    while chunk := list(islice(lines, size)):
        yield chunk
