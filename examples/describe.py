"""Write text.yaml into a folder of binary data, or print values of the one that is there.

    python examples/describe.py DATA KEY=VALUE [KEY=VALUE ...]
    python examples/describe.py DATA KEY [KEY ...]

`source=de target=en tokenize=true` writes these keys; lwc_fairseq/preparation.py explains all. `bpe` prints the kind of
sub-words, or an empty line if the text has none.
"""

import argparse
import sys
from pathlib import Path

from lwc_fairseq.preparation import FILE, read_preparation, write_preparation
from lwc_fairseq_compat import UserError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that fairseq-preprocess wrote")
    parser.add_argument("keys", nargs="+", metavar="KEY", help="KEY=VALUE to write, or KEY to print")
    args = parser.parse_args()
    pairs = [key.partition("=") for key in args.keys]
    if any(equals for _, equals, _ in pairs):
        if unread := [key for key, equals, _ in pairs if not equals]:
            raise UserError(f"{unread[0]}: give KEY=VALUE, as for the others")
        write_preparation(args.data, {key: value for key, _, value in pairs})
        return
    preparation = read_preparation(args.data)
    if preparation is None:
        raise UserError(f"{args.data / FILE}: no such file")
    for key in args.keys:
        if not hasattr(preparation, key):
            raise UserError(f"{key}: {FILE} has no such key")
        print(getattr(preparation, key) or "")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"describe: error: {error}")
