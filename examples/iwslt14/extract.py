"""The sentences of IWSLT14's archives, as they stand in them: training pairs, and the development and test talks.

    python examples/iwslt14/extract.py de|ro|es ARCHIVE [ARCHIVE] --out FOLDER

An archive is that of a language pair, as de-en.tgz, or that of all, in which it lies.
Training text has a sentence a line, and lines that begin with a tag of the talk (its address, title and so on); titles
and descriptions are sentences, too. Talks of the other sets are XML with `<seg>` elements.
"""

import argparse
import re
import sys
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

OTHER_TAGS = re.compile(r"</?(?:url|keywords|speaker|talkid|reviewer|translator|transcript|doc)\b")
SENTENCE_TAGS = re.compile(r"</?(?:title|description)>")
SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL)


def training_lines(text: str) -> list[str]:
    """Sentences, titles and descriptions; of the other tags' lines none."""
    # by `split`, characters that other programs take for the end of a line become blanks
    lines = (" ".join(SENTENCE_TAGS.sub("", line).split()) for line in text.removesuffix("\n").split("\n"))
    return [line for line in lines if not OTHER_TAGS.match(line)]


def talk_lines(text: str) -> list[str]:
    return [" ".join(segment.replace("’", "'").split()) for segment in SEGMENT.findall(text)]


def members(archive: tarfile.TarFile, language: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Names without folders, and content, of an archive of one language pair, or of that pair in that of all."""
    for member in archive:
        name = Path(member.name).name
        if name == f"{language}-en.tgz":
            with tarfile.open(fileobj=archive.extractfile(member)) as inner:
                yield from members(inner, language)
        elif member.isfile():
            yield name, archive.extractfile(member)


def extract(language: str, archives: list[Path], out: Path) -> None:
    """Write train.LANGUAGE, train.en, and dev2010, tst2010 and so on of what is there."""
    out.mkdir(parents=True)
    for path in archives:
        with tarfile.open(path) as archive:
            for name, content in members(archive, language):
                if found := re.fullmatch(rf"train\.tags\.{language}-en\.({language}|en)", name):
                    target, read = out / f"train.{found[1]}", training_lines
                elif found := re.fullmatch(rf"IWSLT14\.\w+\.(\w+)\.{language}-en\.({language}|en)\.xml", name):
                    target, read = out / f"{found[1]}.{found[2]}", talk_lines
                else:
                    continue
                lines = read(content.read().decode("utf-8"))
                target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for path in sorted(out.glob("*.en")):
        other = path.with_suffix(f".{language}")
        sizes = [side.read_text(encoding="utf-8").count("\n") if side.exists() else 0 for side in (other, path)]
        if sizes[0] != sizes[1]:
            raise tarfile.TarError(f"{other.name} has {sizes[0]} sentences, {path.name} {sizes[1]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language", choices=["de", "ro", "es"])
    parser.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    args = parser.parse_args()
    try:
        extract(args.language, args.archives, args.out)
    except (OSError, EOFError, tarfile.TarError, zlib.error, UnicodeDecodeError) as error:
        names = " or ".join(map(str, args.archives))
        sys.exit(f"extract.py: error: {error}: if {names} is damaged, remove it and start again")
