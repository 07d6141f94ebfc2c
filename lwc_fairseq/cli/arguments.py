"""Arguments that several commands share, and their types."""

import argparse
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lwc_fairseq_compat import UserError

from ..files import import_plugins

if TYPE_CHECKING:
    from ..hub import Translator


def add_translator(command, given: str) -> None:
    """Add what :func:`load_with_attention` reads. `given` begins a sentence of the help, such as "sentences are"."""
    add_checkpoint(command)
    command.add_argument("--data", help="the folder of binary data (default: that of the training)")
    add_subwords(command, given)
    add_user_dir(command)


def add_checkpoint(command) -> None:
    model = "a model of this plugin, or fairseq's Transformer; or a pack, or the address of one"
    command.add_argument("checkpoint", metavar="CHECKPOINT", help=model)


def load_with_attention(args: argparse.Namespace) -> "Translator":
    """Load the model that the arguments of :func:`add_translator` name, on a GPU if there is one."""
    import torch

    from ..hub import load

    import_plugins(args.user_dir)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    files = {"bpe_codes": args.bpe_codes, "sentencepiece_model": args.sentencepiece_model}
    translator = load(args.checkpoint, args.data, attention=True, **files)
    return translator.cuda() if torch.cuda.is_available() else translator


def add_user_dir(command, more: str = "") -> None:
    command.add_argument(
        "--user-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a package with your own models, a folder or an installed one; may be repeated" + more,
    )


def add_subwords(command, given: str) -> None:
    files = command.add_mutually_exclusive_group()
    files.add_argument(
        "--bpe-codes",
        type=Path,
        metavar="FILE",
        help=f"the codes of subword-nmt: {given} words, which they split into sub-words",
    )
    files.add_argument(
        "--sentencepiece-model",
        type=Path,
        metavar="FILE",
        help=f"a model of sentencepiece, which makes the sub-words: {given} text as the data had it before",
    )


def add_first(command) -> None:
    command.add_argument(
        "--gold-first", type=int, choices=(0, 1), default=0, help="number of the first word in GOLD (default: 0)"
    )


def check_first(args: argparse.Namespace) -> None:
    """Raises UserError if --gold-first is 1 without --gold: it numbers the words of that file."""
    if args.gold_first and not args.gold:
        raise UserError(f"--gold-first {args.gold_first} says how GOLD counts words: add --gold GOLD, or leave it out")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


def number_or_all(text: str) -> int | None:
    if text == "all" or text.isdecimal():
        return None if text == "all" else int(text)
    raise argparse.ArgumentTypeError(f"{text}: give a number, counted from 0, or all")


def utf8(argument: str) -> str:
    """Decode an argument as UTF-8. Python has decoded it in the encoding of the locale."""
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:  # it was written in that encoding
        return argument.encode("utf-8", "replace").decode()  # "?" for what is in neither


def named_path(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text}: give a name and a file, such as ours=hypotheses.txt")
    return utf8(name), Path(path)


def growing(text: str) -> list[int]:
    numbers = [positive(part) for part in text.split(",")]
    if numbers != sorted(set(numbers)):
        raise argparse.ArgumentTypeError(f"{text}: give lengths in increasing order")
    return numbers
