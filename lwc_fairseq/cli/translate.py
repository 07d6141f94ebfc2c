"""`lwc-fairseq translate`: translates plain text."""

import argparse
import logging
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.search_options import check_search

from ..files import import_plugins
from .arguments import add_subwords, add_user_dir, positive

SUBWORDS_HINT = " (if the data has sub-words, --bpe-codes or --sentencepiece-model makes them)"
"""Added to a warning of unknown tokens."""


def add_translate(commands) -> None:
    translate = commands.add_parser(
        "translate",
        help="translate plain text",
        description="Translate each line of standard input, and write one line for each to standard output. The file "
        "text.yaml in the folder of the data, which the recipes write, says how to prepare the text. Without this "
        "file, the text must be tokenized as the data and, unless one of the options below splits it, consist of its "
        "sub-words.",
    )
    add = translate.add_argument
    add(
        "checkpoints",
        nargs="+",
        metavar="CHECKPOINT",
        help="a model, or a pack with one, or the address of a pack; several are an ensemble",
    )
    add("--data", help="the folder of binary data (default: that of the training)")
    add_subwords(translate, "the lines are")
    add("--beam", type=positive, default=5, metavar="N", help="beam width (default: 5)")
    add("--lenpen", type=float, default=1.0, metavar="ALPHA", help="length penalty (default: 1)")
    add("--gnmt-length-penalty", action="store_true", help="divide by the length penalty of Wu et al. (2016)")
    add("--batch-size", type=positive, default=64, metavar="N", help="sentences translated at a time (default: 64)")
    add(
        "--buffer-size",
        type=positive,
        default=1024,
        metavar="N",
        help="lines read before they are translated, to sort them by length (default: 1024)",
    )
    add("--detokenize", action="store_true", help="write raw text instead of tokens; what was lower-cased stays so")
    add("--cpu", action="store_true", help="do not use a GPU")
    add("--bf16", action="store_true", help="compute in bfloat16")
    add_user_dir(translate)
    translate.set_defaults(call=translate_command)


def translate_command(args: argparse.Namespace) -> int:
    import torch
    from tqdm import tqdm

    from ..hub import load

    check_search({"beam": args.beam, "lenpen": args.lenpen})
    for path in args.checkpoints:
        if is_text(Path(path)):
            raise UserError(f"{path} is text, not a checkpoint: give text on standard input, as in `< {path}`")
    import_plugins(args.user_dir)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    settings = {"batch_size": args.batch_size, "max_tokens": None, "detokenize": args.detokenize, "bf16": args.bf16}
    settings |= {"bpe_codes": args.bpe_codes, "sentencepiece_model": args.sentencepiece_model}
    settings |= {"gnmt_length_penalty": True} if args.gnmt_length_penalty else {}
    model = load(args.checkpoints, args.data, **settings)
    if torch.cuda.is_available() and not args.cpu:
        model.cuda()
    lines = (line.removesuffix("\n") for line in sys.stdin)
    missing, damaged, read = Counter[str](), [], 0
    is_typed = sys.stdin.isatty()
    if is_typed:
        print("lwc-fairseq: type a sentence a line; Ctrl-D ends", file=sys.stderr)
    with tqdm(desc="translating", unit=" lines", mininterval=5, disable=is_typed) as progress:
        while buffer := list(islice(lines, 1 if is_typed else args.buffer_size)):
            damaged += [i for i, line in enumerate(buffer, read + 1) if "\N{REPLACEMENT CHARACTER}" in line]
            read += len(buffer)
            tokens = [model.apply_bpe(model.tokenize(line)) for line in buffer]
            missing.update(token for line in tokens for token in line.split() if token not in model.src_dict)
            encoded = [model.binarize(line) for line in tokens]
            for best, *_ in model.generate(encoded, args.beam, lenpen=args.lenpen):
                print(model.decode(best["tokens"]))
            sys.stdout.flush()
            progress.update(len(buffer))
    if damaged:
        more = f" (and {len(damaged) - 1:,} more)" if len(damaged) > 1 else ""
        warn(
            f"line {damaged[0]:,}{more} has characters that are not UTF-8, or were lost in an earlier conversion "
            "(U+FFFD): convert the original text, for example with iconv"
        )
    if missing:
        examples = " ".join(token for token, _ in missing.most_common(5))
        number = "1 token is" if missing.total() == 1 else f"{missing.total():,} tokens are"
        hint = "" if model.bpe else SUBWORDS_HINT
        warn(f"{number} not in the vocabulary, so the model read <unk>, most often for: {examples}{hint}")
    return 0


def is_text(path: Path) -> bool:
    """Return whether a file holds text, and so no checkpoint of PyTorch: an archive, or in older versions a pickle."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return bool(head) and b"\0" not in head and not head.startswith((b"\x80", b"PK"))


def warn(what: str) -> None:
    print(f"lwc-fairseq: warning: {what}", file=sys.stderr)
