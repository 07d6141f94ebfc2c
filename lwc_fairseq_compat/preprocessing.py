"""Text for ``fairseq-preprocess``: a patch that checks it before anything is written."""

import os
import re
import sys

from .errors import UserError
from .hooks import replaces
from .text import open_text

LINK = re.compile("([0-9]+)-([0-9]+)")


@replaces("fairseq.options", "get_preprocessing_parser")
def check_text_of_preprocessing(get_parser, *args, **kwargs):
    """Refuse text that is missing, empty, or has another number of lines in the other language, and dictionaries and
    alignments that cannot be read or do not fit.

    Why: fairseq fails with a traceback if a file is missing or a dictionary already exists. It accepts the other
    mistakes, and training then fails on them. Only ``fairseq-preprocess`` calls this function. Needed: always.
    """
    parser = get_parser(*args, **kwargs)
    parse_args = parser.parse_args

    def parse_and_check(*args, **kwargs):
        options = parse_args(*args, **kwargs)
        check_preprocessing(options)
        return options

    parser.parse_args = parse_and_check
    return parser


def check_preprocessing(options):
    """Raises UserError if the options, or the files that they name, cannot work."""
    languages = [options.source_lang] if options.only_source else [options.source_lang, options.target_lang]
    check_dictionaries(options, languages)
    prefixes = {"trainpref": [options.trainpref] if options.trainpref else []}  # which fairseq does not split
    for name in ("validpref", "testpref"):
        prefixes[name] = [path for path in (getattr(options, name) or "").split(",") if path]
    for name, paths in prefixes.items():
        for path in paths:
            files = [f"{path}.{language}" if language else path for language in languages]
            if name == "trainpref" and "," in path and not os.path.exists(files[0]):
                raise UserError(f"--trainpref {path}: give one prefix; `cat` joins several training sets to one")
            check_lines(files, f"--{name}")
    if options.align_suffix or options.alignfile:
        check_alignments(options, prefixes)


def check_alignments(options, prefixes):
    """Raises UserError if the files of ``--align-suffix`` or ``--alignfile`` do not fit the text."""
    if options.only_source:
        raise UserError("--align-suffix and --alignfile link the words of two languages: leave out --only-source")
    if suffix := options.align_suffix:
        if options.dataset_impl == "raw":
            raise UserError(f"--align-suffix {suffix} does not work with --dataset-impl raw: leave one of them out")
        for name, paths in prefixes.items():
            if len(paths) > 1:
                raise UserError(f"--align-suffix {suffix}: fairseq writes the alignments of one --{name} only")
            for path in paths:
                if name != "trainpref" and not os.path.exists(f"{path}.{suffix}"):
                    print(f"warning: no such file: {path}.{suffix}: the set has no alignments", file=sys.stderr)
                else:
                    check_links(options, path, f"{path}.{suffix}", f"--align-suffix {suffix}")
    if options.alignfile:
        if not options.trainpref:
            raise UserError(f"--alignfile {options.alignfile}: add --trainpref, the text that it aligns")
        check_links(options, options.trainpref, options.alignfile, "--alignfile")


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
        if path and not os.path.isfile(path):
            raise UserError(f"{option} {path}: no such file")
        if path:
            get_task(options.task).load_dictionary(path)


def check_links(options, prefix, path, option):
    """Raises UserError if a file of alignments is missing, has another number of lines than the text of a prefix, or
    has an invalid line."""
    text = [f"{prefix}.{language}" for language in (options.source_lang, options.target_lang)]
    check_lines([*text, path], option)
    with open_text(text[0]) as sources, open_text(text[1]) as targets, open_text(path) as alignments:
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
    """Raises UserError if one of the files of a set is missing or empty, or if their numbers of lines differ."""
    for path in paths:
        if not os.path.isfile(path):
            raise UserError(f"{option}: no such file: {path}")
    numbers = {}
    for path in paths:
        with open(path, "rb") as file:
            numbers[path] = sum(1 for _ in file)  # as fairseq counts them: the last one may lack its line feed
    for path, number in numbers.items():
        if number == 0:
            raise UserError(f"{option}: {path} is empty")
    if len({*numbers.values()}) > 1:
        counts = " and ".join(f"{path} has {number:,}" for path, number in numbers.items())
        raise UserError(f"{option}: {counts} lines: each line must stand beside its translation")
