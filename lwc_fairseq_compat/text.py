"""Text: UTF-8 in every locale, with or without a byte-order mark, in files and in the commands' standard streams.

A line ends only at a line feed. fairseq itself reads and writes in the encoding of the locale, and ends lines also at
carriage returns, so that source and target no longer correspond.
"""

import codecs
import contextlib
import fileinput
import functools
import io
import locale
import logging
import os
import signal
import sys

from .errors import UserError
from .hooks import before_fairseq, mends, replaces


def read_utf8(path):
    """Return the content of a text file without its byte-order mark.

    Raises:
        UserError: the file cannot be read, or is not UTF-8.
    """
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: not UTF-8") from error


def open_text(path, mode="r", **settings):
    """Open a file. If it is text to be read, bytes that are not UTF-8 become U+FFFD."""
    if mode != "r":
        return open(path, mode, **settings)
    return open(path, encoding="utf-8-sig", errors="replace", newline="\n")


@mends("fairseq.data.indexed_dataset")
@mends("fairseq.utils")
@mends("fairseq_cli.preprocess")
@mends("fairseq_cli.score")
def read_text_in_any_locale(module):
    """Read data of raw text, dictionaries of alignments, embeddings and the files of ``--alignfile`` as UTF-8.
    ``fairseq-score`` refuses other encodings.

    Mends: the module's ``open``. Why: see above. Needed: always.
    """
    is_score = module.__name__ == "fairseq_cli.score"
    module.open = (lambda path, mode="r": io.StringIO(read_utf8(path), newline="\n")) if is_score else open_text


@mends("fairseq.file_chunker_utils")
def read_training_text(module):
    """Let ``fairseq-preprocess`` read bytes that are not UTF-8 as U+FFFD, and skip a byte-order mark.

    Mends: the module's ``open`` and ``find_offsets``. Why: in fairseq, such bytes stop the command with a negative seek
    position, and the mark becomes a part of the first word. Needed: always.
    """
    find_offsets = module.find_offsets

    @functools.wraps(find_offsets)
    def find_offsets_after_the_mark(filename, num_chunks):
        first, *others = find_offsets(filename, num_chunks)
        with open(filename, "rb") as file:
            has_mark = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
        return [len(codecs.BOM_UTF8) if has_mark else first, *others]

    module.open = functools.partial(open, errors="replace", newline="\n")
    module.find_offsets = find_offsets_after_the_mark


@replaces("fairseq.options", "get_interactive_generation_parser")
def read_input_in_any_locale(get_parser, *args, **kwargs):
    """Read the lines of ``fairseq-interactive --input`` as :func:`open_text` does.

    Only this command calls the function. Mends also: ``fileinput``, with which the command reads. Why: see the top of
    this file. Needed: always.
    """
    fileinput.hook_encoded = lambda encoding, errors=None: open_text
    return get_parser(*args, **kwargs)


@replaces("fairseq.data.encoders.subword_nmt_bpe", "SubwordNMTBPE.__init__")
def read_codes_in_any_locale(init, self, cfg):
    """Read the codes of subword-nmt as UTF-8, and name a line that is not a code.

    Why: fairseq reads them in the encoding of the locale. subword-nmt ends the process at a wrong line. If a byte-order
    mark comes first, it misses the version and reads the codes as those of its first version. Needed: always.
    """
    from fairseq.file_utils import cached_path

    try:
        from subword_nmt.apply_bpe import BPE
    except ImportError as error:
        raise UserError("--bpe subword_nmt needs another package: pip install subword-nmt") from error
    codes = read_utf8(cached_path(cfg.bpe_codes))
    has_header = codes.startswith("#version:")
    lines = codes.rstrip("\n").split("\n")[has_header:] or [""]
    for number, line in enumerate(lines, 1 + has_header):
        if len(line.strip("\r\n ").split(" ")) != 2:
            raise UserError(
                f"{cfg.bpe_codes}, line {number}: not a code of subword-nmt, which is two sub-words with a space "
                "between them"
            )
    self.bpe = BPE(io.StringIO(codes, newline="\n"), separator=cfg.bpe_separator)
    self.bpe_symbol = cfg.bpe_separator + " "


def use_utf8():
    """Read and write UTF-8 from now on, whatever the locale: standard streams, logs, and files of other packages. A
    name of a file that is not UTF-8 is written as it is. A closed standard input is read as an empty one."""
    with contextlib.suppress(locale.Error):  # a system without this locale
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")  # the encoding of files that are opened without one
    if sys.stdin is None:  # closed
        sys.stdin = open(os.devnull)  # noqa: SIM115 (it stays open)
    sys.stdin.reconfigure(encoding="utf-8-sig", errors="replace", newline="\n")
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def is_command_of_fairseq():
    """Return whether this program is one of fairseq's commands."""
    folder, name = os.path.split(sys.argv[0])
    return name.startswith("fairseq-") or os.path.basename(folder) == "fairseq_cli"  # by python -m


@before_fairseq
def prepare_streams_of_commands():
    """Let fairseq's commands read and write UTF-8, and end like other programs (status 141) when the program that reads
    their output ends.

    Why: they print tracebacks if the output is read by ``head``. Needed: always.
    """
    if is_command_of_fairseq():
        use_utf8()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@replaces("fairseq.trainer", "Trainer.__init__")
def train_without_a_reader(init, self, *args, **kwargs):
    """Let training go on when the program that reads its output ends.

    Why: SIGPIPE would end the training, and its work would be lost. If SIGPIPE is ignored, Python's logging prints a
    traceback for each message. Needed: always.
    """
    init(self, *args, **kwargs)
    if signal.getsignal(signal.SIGPIPE) is signal.SIG_DFL:  # by prepare_streams_of_commands
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        logging.StreamHandler.handleError = discard_output


def discard_output(handler, record):
    """Handle an error of writing a message: if nobody reads the messages, discard them from now on."""
    if not isinstance(sys.exception(), BrokenPipeError):
        return logging.Handler.handleError(handler, record)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handler.stream.fileno())
    try:
        print("the program that read the output has ended; training goes on", file=sys.stderr, flush=True)
    except BrokenPipeError:  # it read both
        os.dup2(nowhere, sys.stderr.fileno())
