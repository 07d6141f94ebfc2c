"""Text for ``fairseq-preprocess``: patches that check it before anything is written."""

import functools
import os

from .errors import UserError
from .hooks import mends

CHUNK_BYTES = 2**24
PREFIXES = ("trainpref", "validpref", "testpref")


@mends("fairseq.options", "get_preprocessing_parser")
def check_text_of_preprocessing(get_parser):
    """Refuse text that is missing, empty, or has another number of lines in the other language.

    Why: fairseq fails with a traceback if a file or the dictionary's place is wrong. It accepts the other mistakes, and
    training then fails on them. Only ``fairseq-preprocess`` calls this function. Needed: always.
    """

    @functools.wraps(get_parser)
    def get_parser_that_checks(*args, **kwargs):
        parser = get_parser(*args, **kwargs)
        parse_args = parser.parse_args

        def parse_and_check(*args, **kwargs):
            options = parse_args(*args, **kwargs)
            languages = [options.source_lang] if options.only_source else [options.source_lang, options.target_lang]
            check_dictionaries(options, languages)
            for prefix in PREFIXES:
                for path in filter(None, (getattr(options, prefix) or "").split(",")):
                    check_lines([f"{path}.{language}" if language else path for language in languages], f"--{prefix}")
            return options

        parser.parse_args = parse_and_check
        return parser

    return get_parser_that_checks


def check_dictionaries(options, languages):
    """Raises UserError if a dictionary that fairseq would make exists already."""
    for language, known in zip(languages, (options.srcdict, options.tgtdict), strict=False):
        path = os.path.join(options.destdir, f"dict.{language}.txt" if language else "dict.txt")
        if os.path.exists(path) and not known:
            raise UserError(
                f"{path} exists: remove the folder or give another --destdir, or keep the dictionary with --srcdict "
                "and --tgtdict"
            )


def check_lines(paths, option):
    """Check the files of a set, one for each language.

    Raises:
        UserError: one is missing or empty, or their numbers of lines differ.
    """
    for path in paths:
        if not os.path.isfile(path):
            raise UserError(f"{option}: no such file: {path}")
    numbers = [count_lines(path) for path in paths]
    for path, number in zip(paths, numbers, strict=True):
        if number == 0:
            raise UserError(f"{option}: {path} is empty")
    if len({*numbers}) > 1:
        found = " and ".join(f"{path} has {number:,}" for path, number in zip(paths, numbers, strict=True))
        raise UserError(f"{option}: {found} lines: each line must stand beside its translation")


def count_lines(path):
    """Count the lines of a file as fairseq reads them: a last one may lack its line feed."""
    number, last = 0, b"\n"
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            number += chunk.count(b"\n")
            last = chunk[-1:]
    return number + (last != b"\n")
