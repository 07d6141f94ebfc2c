"""`lwc-fairseq pack`: one file with all that a trained model needs to translate raw text."""

import argparse
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import checksum, make_place


def add_pack(commands) -> None:
    pack = commands.add_parser(
        "pack",
        help="one file with a model and what prepares its text",
        description="Write a pack: a checkpoint in half precision, its dictionaries, the files that prepare raw text, "
        "and a model card. `translate`, `attention`, `align`, `reverse`, `serve`, `export`, and `load` in Python take "
        "a pack in place of a checkpoint.",
    )
    pack.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="the trained model")
    pack.add_argument("--data", type=Path, required=True, help="the folder of binary data, with text.yaml")
    pack.add_argument("--card", type=Path, required=True, metavar="FILE", help="the model card, in Markdown")
    pack.add_argument("--out", type=Path, required=True, metavar="FILE", help="the pack; its name usually ends in .zip")
    pack.set_defaults(call=pack_command)


def pack_command(args: argparse.Namespace) -> int:
    if not args.card.is_file():
        raise UserError(f"--card {args.card}: no such file")
    if not args.data.is_dir():
        raise UserError(f"--data {args.data}: no such folder")
    make_place(args.out, inputs=[args.checkpoint, args.card])
    from ..packs import write_pack
    from .average import read

    state = read(args.checkpoint)
    if state.get("cfg") is None:
        raise UserError(f"{args.checkpoint}: it has no configuration, so an old version of fairseq wrote it")
    task = state["cfg"].get("task")
    if not isinstance(task, dict) or "source_lang" not in task:
        raise UserError(f"{args.checkpoint}: give a model of --task concat_translation or translation")
    write_pack(state, args.data, args.card, args.out)
    size = args.out.stat().st_size / 2**20
    print(f"wrote {args.out}, {size:.1f} MiB, sha256 {checksum(args.out)}")
    return 0
