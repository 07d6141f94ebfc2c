"""Extract the sentences of the IWSLT14 archives: the training pairs, and the talks for validation and test.

    python examples/iwslt14/extract.py de|ro|es ARCHIVE [ARCHIVE] --out FOLDER

An ARCHIVE holds one language pair (de-en.tgz), or the archives of all language pairs. Training text has one sentence a
line, between lines that start with a tag (the address of the talk, its title and so on); titles and descriptions count
as sentences. The other sets are XML files with `<seg>` elements.
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
    """The sentences, titles and descriptions."""
    # `split` without an argument turns other characters that programs take for the end of a line into spaces.
    lines = (" ".join(SENTENCE_TAGS.sub("", line).split()) for line in text.removesuffix("\n").split("\n"))
    return [line for line in lines if not OTHER_TAGS.match(line)]


def talk_lines(text: str) -> list[str]:
    """The segments of a talk."""
    return [" ".join(segment.replace("’", "'").split()) for segment in SEGMENT.findall(text)]


def members(archive: tarfile.TarFile, language: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of one language pair: (name without folders, content). The archive may hold all language pairs."""
    for member in archive:
        name = Path(member.name).name
        if name == f"{language}-en.tgz":
            with tarfile.open(fileobj=archive.extractfile(member)) as inner:
                yield from members(inner, language)
        elif member.isfile():
            yield name, archive.extractfile(member)


def extract(language: str, archives: list[Path], out: Path) -> None:
    """Writes train.LANGUAGE, train.en, and the talks that are there: dev2010.LANGUAGE, dev2010.en and so on.

    Raises tarfile.TarError if the sides of a set differ in length.
    """
    out.mkdir(parents=True)
    for path in archives:
        with tarfile.open(path) as archive:
            for name, content in members(archive, language):
                if match := re.fullmatch(rf"train\.tags\.{language}-en\.({language}|en)", name):
                    target, read = out / f"train.{match[1]}", training_lines
                elif match := re.fullmatch(rf"IWSLT14\.\w+\.(\w+)\.{language}-en\.({language}|en)\.xml", name):
                    target, read = out / f"{match[1]}.{match[2]}", talk_lines
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
