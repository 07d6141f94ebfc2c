"""`lwc-fairseq export`: a folder that translates without PyTorch and fairseq."""

import argparse
from pathlib import Path

from lwc_fairseq_compat import UserError

from .arguments import add_checkpoint, add_user_dir


def add_export(commands) -> None:
    export = commands.add_parser(
        "export",
        help="a folder that translates without PyTorch",
        description="Write a folder with a model as ONNX graphs, its vocabulary and translate.py, a program that needs "
        "numpy and onnxruntime, but neither PyTorch nor fairseq.",
    )
    add_checkpoint(export)
    export.add_argument("folder", type=Path, metavar="FOLDER", help="where everything goes; must not exist")
    export.add_argument("--data", type=Path, help="the folder of binary data (default: that of the training)")
    export.add_argument("--int8", action="store_true", help="write the weights of products as 8-bit whole numbers")
    add_user_dir(export)
    export.set_defaults(call=export_command)


def export_command(args: argparse.Namespace) -> int:
    from ..files import import_plugins, make_folder

    if args.folder.exists():
        raise UserError(f"{args.folder} exists: remove it, or give another folder")
    make_folder(args.folder.parent, "FOLDER")
    import_plugins(args.user_dir)
    from ..export.folder import write_folder

    try:
        write_folder(args.checkpoint, args.data, args.folder, args.int8)
    except OSError as error:
        raise UserError(f"{error.filename or args.folder}: {error.strerror or error}") from error
    print(f"wrote {args.folder}: try `python {args.folder}/translate.py < text`")
    return 0
