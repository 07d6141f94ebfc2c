"""The sentences of IWSLT14's archives, as they stand in them: training pairs, and the development and test talks.

    python examples/iwslt14/extract.py de|ro|es ARCHIVE [ARCHIVE] --out FOLDER

Training text has a sentence a line, and lines that begin with a tag of the talk (its address, title and so on); titles
and descriptions are sentences, too. Talks of the other sets are XML with `<seg>` elements.
"""

import argparse
import re
import sys
import tarfile
from pathlib import Path

SENTENCE_TAGS = re.compile(r"</?(?:title|description)>")
SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL)


def training_lines(text: str) -> list[str]:
    """Sentences, titles and descriptions; of the other tags' lines none."""
    # by `split`, characters that other programs take for the end of a line become blanks
    lines = (" ".join(SENTENCE_TAGS.sub("", line).split()) for line in text.removesuffix("\n").split("\n"))
    return [line for line in lines if not line.startswith("<")]


def talk_lines(text: str) -> list[str]:
    return [" ".join(segment.replace("’", "'").split()) for segment in SEGMENT.findall(text)]


def extract(language: str, archives: list[Path], out: Path) -> None:
    """Write train.LANGUAGE, train.en, and dev2010, tst2010 and so on of what is there."""
    out.mkdir(parents=True)
    for path in archives:
        with tarfile.open(path) as archive:
            for member in archive:
                name = Path(member.name).name
                if found := re.fullmatch(rf"train\.tags\.{language}-en\.({language}|en)", name):
                    target, read = out / f"train.{found[1]}", training_lines
                elif found := re.fullmatch(rf"IWSLT14\.\w+\.(\w+)\.{language}-en\.({language}|en)\.xml", name):
                    target, read = out / f"{found[1]}.{found[2]}", talk_lines
                else:
                    continue
                lines = read(archive.extractfile(member).read().decode("utf-8"))
                target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for path in sorted(out.glob("*.en")):
        other = path.with_suffix(f".{language}")
        sizes = [
            len(side.read_text(encoding="utf-8").split("\n")) - 1 if side.exists() else 0 for side in (other, path)
        ]
        if sizes[0] != sizes[1]:
            sys.exit(
                f"extract.py: error: {other.name} has {sizes[0]} sentences, {path.name} {sizes[1]}: not a whole archive"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language", choices=["de", "ro", "es"])
    parser.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    args = parser.parse_args()
    extract(args.language, args.archives, args.out)
