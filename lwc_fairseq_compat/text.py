"""Text files: UTF-8 in every locale, with or without a byte-order mark. A line ends only at a line feed."""

import codecs
import fileinput
import functools
import io

from .errors import UserError
from .hooks import mends


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
def read_text_in_any_locale(module):
    """Read data of raw text, dictionaries of alignments, embeddings and the files of ``--alignfile`` in this way.

    Why: fairseq reads some of them in the encoding of the locale, and ends lines also at carriage returns, so that
    source and target no longer correspond. Mends: the module's ``open``. Needed: always.
    """
    module.open = open_text


@mends("fairseq_cli.score")
def score_text_in_any_locale(module):
    """Read the files of ``fairseq-score`` as UTF-8, and refuse other encodings.

    Why: it reads them in the encoding of the locale. Mends: the module's ``open``. Needed: always.
    """
    module.open = lambda path, mode="r": io.StringIO(read_utf8(path), newline="\n")


@mends("fairseq.file_chunker_utils")
def read_lines_as_they_are(module):
    """End a line of training data only at a line feed, and read any bytes.

    Why: a carriage return inside a line would end it, and source and target would no longer correspond. Bytes that are
    not UTF-8 would stop ``fairseq-preprocess`` with a negative seek position; they become U+FFFD.
    Mends: the module's ``open``. Needed: always.
    """
    module.open = functools.partial(open, errors="replace", newline="\n")


@mends("fairseq.file_chunker_utils", "find_offsets")
def begin_after_the_mark(find_offsets):
    """Let training data begin after its byte-order mark.

    Why: the mark becomes a part of the first word. Needed: always.
    """

    @functools.wraps(find_offsets)
    def find_offsets_after_the_mark(filename, num_chunks):
        first, *others = find_offsets(filename, num_chunks)
        with open(filename, "rb") as file:
            has_mark = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
        return [len(codecs.BOM_UTF8) if has_mark else first, *others]

    return find_offsets_after_the_mark


@mends("fairseq.options", "get_interactive_generation_parser")
def read_input_as_it_is(get_parser):
    """Read the lines of ``fairseq-interactive --input`` in this way.

    Why: as for :func:`read_lines_as_they_are`. Only that command calls this function; Python reads its lines.
    Needed: always.
    """

    @functools.wraps(get_parser)
    def get_parser_and_set_input(*args, **kwargs):
        fileinput.hook_encoded = lambda encoding: open_text
        return get_parser(*args, **kwargs)

    return get_parser_and_set_input


@mends("fairseq.data.encoders.subword_nmt_bpe", "SubwordNMTBPE.__init__")
def read_codes_in_any_locale(init):
    """Read the codes of subword-nmt as UTF-8, and name a line that is none.

    Why: fairseq reads them in the encoding of the locale. subword-nmt ends the process at a wrong line, and takes codes
    after a byte-order mark for those of its first version. Needed: always.
    """
    from fairseq.file_utils import cached_path

    @functools.wraps(init)
    def init_with_codes(self, cfg):
        from subword_nmt.apply_bpe import BPE

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

    return init_with_codes
