"""Any text: no command crashes, and every input line has its output line, in order."""

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import LONG, ONE_FAMILY, TASK, run

LINES = 100  # in a file
WORDS = st.sampled_from("ba de fi go ku BA <s> </s> <unk> <pad> @@ ba@@ , .".split())
STRANGE = (
    *("", " ", "\t", "   \t ", "@@", "@@ @@", "a@@", "@@a", "<s>", "</s>", "<pad>", "<unk>", "<s> </s> <pad> <unk>"),
    *("\x00", "a\x00b", "\r", "a\rb", "ba\r", "\x0b\x0c\x1c\x1d\x1e\x85", "a\u2028b\u2029c\xa0d", "\ufeffba"),
    *("\u202eba de\u202c", "\u2066ba\u2069", "e\u0301\u0301\u0301", "👩‍👩‍👧‍👦", "madeupword0000", "#fairseq:overwrite"),
    *("-", "--path x", "H-0\t1\tx", "|||", "ba\tde", "%s {} $(ls) `ls` \\n", "'\"", "nan", "-inf 0-0"),
    *("ba " * 5000, "x" * 100_000, "\udced\udca0\udc80", "\udcff\udcfe", "ba \udcc3"),
)
"""The last three are bytes that are not UTF-8, which a command gets as they are."""
LINE = st.one_of(
    st.sampled_from(STRANGE),
    st.lists(WORDS, max_size=12).map(" ".join),
    st.text(max_size=40).map(lambda text: text.replace("\n", "")),
    st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"").decode("utf-8", "surrogateescape")),
)
TEXT = st.lists(LINE, min_size=LINES, max_size=LINES)


def fuzz(files: int):
    """Draw so many files; the short form draws the same ones every time."""
    quiet = {"database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
    return lambda test: settings(max_examples=files, derandomize=files < 10, **quiet)(given(lines=TEXT)(test))


def write(path, lines: list[str]):
    path.write_bytes(file_of(lines).encode("utf-8", "surrogateescape"))
    return path


def file_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def as_read(line: str) -> str:
    """The text that a command reads."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def interactive(data, checkpoint, lines, *flags) -> None:
    options = (*TASK, "--path", checkpoint, "--beam", "2", "--max-len-b", "5", "--cpu", *flags)
    done = run("fairseq-interactive", data, *options, stdin=file_of(lines))
    for letter in "SHDP":
        numbers = [line[2:].split("\t")[0] for line in done.stdout.split("\n") if line.startswith(f"{letter}-")]
        assert numbers == [str(i) for i in range(len(lines))], letter


def preprocess(folder, lines) -> None:
    """Both sides of a text, with dictionaries made of it, by two workers; each line is what the dictionary says."""
    text = {"de": lines, "en": lines[::-1]}
    for language in text:
        write(folder / f"text.{language}", text[language])
    flags = ("-s", "de", "-t", "en", "--workers", "2", "--destdir", folder / "bin")
    run("fairseq-preprocess", "--trainpref", folder / "text", *flags)
    for language in text:
        dictionary = Dictionary.load(str(folder / "bin" / f"dict.{language}.txt"))
        found = load_indexed_dataset(str(folder / "bin" / f"train.de-en.{language}"), dictionary)
        assert len(found) == len(lines)
        read = as_read(file_of(text[language])).removeprefix("\ufeff").split("\n")[:-1]
        for line, tokens in zip(read, found, strict=True):
            expected = dictionary.encode_line(line, add_if_not_exist=False)
            assert torch.equal(tokens.long(), expected.long())


def tools(folder, lines) -> None:
    """They say in one line which file they cannot read. `compare` works with any text in UTF-8."""
    names = ("sys", "ref", "links", "gold")
    sys, ref, links, gold = (write(folder / name, lines[i:] + lines[:i]) for i, name in enumerate(names))
    for command in (("compare", f"system={sys}", "--ref", ref, "--out", folder / "out"), ("aer", links, gold)):
        done = run("lwc-fairseq", *command, check=False)
        assert "Traceback" not in done.stderr
        assert not done.returncode or "lwc-fairseq: error: " in done.stderr.strip().split("\n")[-1]
    readable = [as_read(line) for line in lines if not line.startswith("H-")]  # as output of fairseq-generate
    sys, ref = write(folder / "sys", readable), write(folder / "ref", readable[1:] + readable[:1])
    run("lwc-fairseq", "compare", f"system={sys}", "--ref", ref, "--out", folder / "out")


@ONE_FAMILY
def test_every_strange_line_is_translated(tiny_data, checkpoints, family):
    interactive(tiny_data, checkpoints[family], list(STRANGE), "--buffer-size", "50", "--batch-size", "9")


def test_every_strange_line_at_once(tmp_path):
    preprocess(tmp_path, list(STRANGE))
    tools(tmp_path, list(STRANGE))


def test_input_from_a_file(tiny_data, checkpoints, tmp_path):
    path = write(tmp_path / "text", list(STRANGE))
    flags = (*TASK, "--path", checkpoints["lwc"], "--beam", "2", "--max-len-b", "5", "--cpu", "--input", path)
    found = run("fairseq-interactive", tiny_data, *flags).stdout.split("\n")
    assert sum(line.startswith("H-") for line in found) == len(STRANGE)


@pytest.mark.parametrize("files", [2, pytest.param(100, marks=LONG)])
@ONE_FAMILY
def test_interactive(tiny_data, checkpoints, family, files, record_property):
    @fuzz(files)
    def check(lines):
        interactive(tiny_data, checkpoints[family], lines, "--buffer-size", "100", "--batch-size", "20")

    check()
    record_property("lines", files * LINES)


@pytest.mark.parametrize("files", [2, pytest.param(100, marks=LONG)])
def test_sub_words(tiny_data, checkpoints, tmp_path, files, record_property):
    (tmp_path / "codes").write_text("#version: 0.2\nb a</w>\nd e</w>\n")
    bpe = ("--bpe", "subword_nmt", "--bpe-codes", tmp_path / "codes", "--tokenizer", "moses")

    @fuzz(files)
    def check(lines):
        interactive(tiny_data, checkpoints["lwc"], lines, *bpe, "--source-lang", "de", "--target-lang", "en")

    check()
    record_property("lines", files * LINES)


@pytest.mark.parametrize("files", [2, pytest.param(100, marks=LONG)])
@pytest.mark.parametrize("work", [preprocess, tools])
def test_files(tmp_path_factory, work, files, record_property):
    @fuzz(files)
    def check(lines):
        work(tmp_path_factory.mktemp("text"), lines)

    check()
    record_property("lines", files * LINES)
