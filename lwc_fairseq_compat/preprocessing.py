"""Text for ``fairseq-preprocess``: patches that check it before anything is written."""

import functools
import os
import re
import sys

from .errors import UserError
from .hooks import mends
from .text import open_text

CHUNK_BYTES = 2**24
PREFIXES = ("trainpref", "validpref", "testpref")
LINK = re.compile("([0-9]+)-([0-9]+)")


@mends("fairseq.options", "get_preprocessing_parser")
def check_text_of_preprocessing(get_parser):
    """Refuse text that is missing, empty, or has another number of lines in the other language, and dictionaries and
    alignments that cannot be read or do not fit.

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
            for name in PREFIXES:
                for path in prefixes(options, name):
                    check_lines([f"{path}.{language}" if language else path for language in languages], f"--{name}")
            if options.align_suffix or options.alignfile:
                check_alignments(options)
            return options

        parser.parse_args = parse_and_check
        return parser

    return get_parser_that_checks


def prefixes(options, name):
    """Return the values of an option for text. fairseq takes several of ``--validpref`` and ``--testpref``.

    Raises:
        UserError: there are several of ``--trainpref``.
    """
    value = getattr(options, name) or ""
    if name != "trainpref":
        return [path for path in value.split(",") if path]
    if "," in value and not os.path.exists(f"{value}.{options.source_lang}" if options.source_lang else value):
        raise UserError(f"--trainpref {value}: give one prefix; `cat` joins several training sets to one")
    return [value] if value else []


def check_dictionaries(options, languages):
    """Raises UserError if a dictionary that fairseq would make exists already, or a given one cannot be read."""
    from fairseq.tasks import get_task

    for language, known in zip(languages, (options.srcdict, options.tgtdict), strict=False):
        path = os.path.join(options.destdir, f"dict.{language}.txt" if language else "dict.txt")
        if os.path.exists(path) and not known:
            raise UserError(
                f"{path} exists: remove the folder or give another --destdir, or keep the dictionary with --srcdict "
                "and --tgtdict"
            )
    for option, path in (("--srcdict", options.srcdict), ("--tgtdict", options.tgtdict)):
        if not path:
            continue
        if not os.path.isfile(path):
            raise UserError(f"{option} {path}: no such file")
        get_task(options.task).load_dictionary(path)


def check_alignments(options):
    """Check the files of ``--align-suffix`` and ``--alignfile``.

    Raises:
        UserError: one is missing, has another number of lines than the text, or a line is invalid.
    """
    if options.only_source:
        raise UserError("--align-suffix and --alignfile link the words of two languages: leave out --only-source")
    languages = (options.source_lang, options.target_lang)
    if suffix := options.align_suffix:
        if options.dataset_impl == "raw":
            raise UserError(f"--align-suffix {suffix} does not work with --dataset-impl raw: leave one of them out")
        for name in PREFIXES:
            paths = prefixes(options, name)
            if len(paths) > 1:
                raise UserError(f"--align-suffix {suffix}: fairseq writes the alignments of one --{name} only")
            for path in paths:
                if name == "testpref" and not os.path.exists(f"{path}.{suffix}"):
                    print(f"warning: no such file: {path}.{suffix}: the test set has no alignments", file=sys.stderr)
                else:
                    text = [f"{path}.{language}" for language in languages]
                    check_links(*text, f"{path}.{suffix}", f"--align-suffix {suffix}")
    if options.alignfile:
        if not options.trainpref:
            raise UserError(f"--alignfile {options.alignfile}: add --trainpref, the text that it aligns")
        text = [f"{options.trainpref}.{language}" for language in languages]
        check_links(*text, options.alignfile, "--alignfile")


def check_links(source, target, path, option):
    """Check a file of alignments.

    Raises:
        UserError: it is missing, has another number of lines than its text, or has an invalid line.
    """
    check_lines([source, target, path], option)
    with open_text(source) as sources, open_text(target) as targets, open_text(path) as alignments:
        for number, (source, target, line) in enumerate(zip(sources, targets, alignments, strict=True), 1):
            sizes = len(source.split()), len(target.split())
            for link in line.split():
                match = LINK.fullmatch(link)
                if not match:
                    raise UserError(f"{path}, line {number}: {link}: not a link such as 0-1")
                if int(match[1]) >= sizes[0] or int(match[2]) >= sizes[1]:
                    raise UserError(
                        f"{path}, line {number}: link {link}, counted from 0, in a sentence of {sizes[0]} and "
                        f"{sizes[1]} words"
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
