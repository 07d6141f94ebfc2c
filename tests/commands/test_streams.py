"""What commands read and write: UTF-8 in every locale, with or without a byte-order mark, for readers that may end."""

import locale
import os
import shutil
import signal
import subprocess
import sys

import pytest
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import IndexedRawTextDataset

from conftest import FRONT_DOOR, LONG, ROOT, TASK, TINY_LWC, TINY_TRAINING, binarize, run, run_python
from front_door import FrontDoor
from lwc_fairseq.preparation import make_subwords
from lwc_fairseq_compat import UserError

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture(scope="module")
def umlauts(tiny_text, tmp_path_factory):
    """Text with umlauts, the first characters of its files being marks."""
    folder = tmp_path_factory.mktemp("umlauts")
    for path in tiny_text.iterdir():
        text = path.read_text().replace("b", "ä").replace("A", "ß")
        (folder / path.name).write_text(MARK + text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def umlaut_data(umlauts, tmp_path_factory):
    return binarize(umlauts, tmp_path_factory.mktemp("data"), "--joined-dictionary")


@pytest.fixture(scope="module", params=["ASCII", pytest.param("Latin-1", marks=LONG)])
def in_locale(request, tmp_path_factory):
    """A function that runs a command in another locale."""
    environment = ASCII
    if request.param == "Latin-1":
        if not shutil.which("localedef"):
            pytest.skip("needs localedef")
        folder = tmp_path_factory.mktemp("locales")
        made = folder / "en_US.ISO-8859-1"
        subprocess.run(["localedef", "--no-archive", "-i", "en_US", "-f", "ISO-8859-1", made], capture_output=True)
        environment = {**ASCII, "LC_ALL": made.name, "LOCPATH": str(folder)}
    door = FrontDoor({**FRONT_DOOR.environment, **environment})

    def run_there(*command, **settings):
        done = door.run([str(part) for part in command], ROOT, **settings)
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield run_there
    door.close()


def test_words_are_the_same_with_a_mark(tiny_data, umlaut_data):
    words, changed = ((data / "dict.de.txt").read_text(encoding="utf-8") for data in (tiny_data, umlaut_data))
    words = words.replace("b", "ä").replace("A", "ß")
    assert sorted(changed.splitlines()) == sorted(words.splitlines())


def test_translation_in_other_locales(in_locale, umlauts, umlaut_data, tiny_checkpoint, tmp_path):
    flags = (umlaut_data, *TASK, "--path", tiny_checkpoint, "--cpu", "--max-len-b", "5", "--skip-dictionary-check")
    text = (umlauts / "test.de").read_text(encoding="utf-8").removeprefix(MARK)
    printed = in_locale("fairseq-generate", *flags)
    sources = {int(line[2:].split("\t")[0]): line.split("\t")[1] for line in printed.splitlines() if line[:2] == "S-"}
    assert [sources[i] for i in range(20)] == text.splitlines()
    (tmp_path / "codes").write_text(f"{MARK}#version: 0.2\nä ß</w>\n", encoding="utf-8")
    given = (*flags, "--bpe", "subword_nmt", "--bpe-codes", tmp_path / "codes")
    printed = in_locale("fairseq-interactive", *given, stdin=f"{MARK}äe äß äb\n")
    # the codes make "äß" one token of five; without a codes file in UTF-8 there are six
    assert "S-0\t<unk> <unk> <unk> <unk> <unk>\n" in printed


@LONG
def test_input_with_a_mark(umlaut_data, tiny_checkpoint, tmp_path):
    (tmp_path / "input").write_text(f"{MARK}äe\n", encoding="utf-8")
    flags = (umlaut_data, *TASK, "--path", tiny_checkpoint, "--cpu", "--max-len-b", "5", "--skip-dictionary-check")
    for more, stdin in (((), f"{MARK}äe\n"), (("--input", tmp_path / "input"), None)):
        assert "S-0\täe\n" in run("fairseq-interactive", *flags, *more, stdin=stdin).stdout


def test_scores_in_other_locales(in_locale, umlauts, tmp_path):
    text = (umlauts / "test.en").read_text(encoding="utf-8").removeprefix(MARK)
    (tmp_path / "plain").write_text(text, encoding="utf-8")
    files = (tmp_path / "plain", umlauts / "test.en")
    assert " = 100.00" in in_locale("fairseq-score", "--ref", files[1], stdin=MARK + text)
    assert " = 100.00" in in_locale("fairseq-score", "--sys", files[0], "--ref", files[1], "--sacrebleu")
    assert "| größe | 100.00 |" in in_locale("lwc-fairseq", "compare", f"größe={files[0]}", "--ref", files[1])


def test_scores_of_other_encodings(tmp_path):
    (tmp_path / "ref").write_bytes(b"a\n\xe4\n")
    done = run("fairseq-score", "--sys", tmp_path / "ref", "--ref", tmp_path / "ref", check=False)
    assert done.stderr == f"fairseq-score: error: {tmp_path / 'ref'}, line 2: not UTF-8\n"


def test_sub_words_of_python_programs(tmp_path):
    """They are in the locale that the program has chosen; the codes are UTF-8."""
    (tmp_path / "codes").write_text(f"{MARK}#version: 0.2\nä ß</w>\n", encoding="utf-8")
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    try:
        assert make_subwords("subword_nmt", str(tmp_path / "codes")).encode("äß ßä") == "äß ß@@ ä"
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


@pytest.mark.parametrize("codes, line", [("#version: 0.2\na b\na b c\n", 3), ("a b\n\nc d\n", 2), ("", 1)])
def test_codes_that_are_none(tmp_path, codes, line):
    (tmp_path / "codes").write_text(codes)
    with pytest.raises(UserError, match=f"codes, line {line}: not a code of subword-nmt"):
        make_subwords("subword_nmt", str(tmp_path / "codes"))


def test_codes_without_the_package_that_applies_them(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "subword_nmt.apply_bpe", None)
    with pytest.raises(UserError, match="--bpe subword_nmt needs another package: pip install subword-nmt"):
        make_subwords("subword_nmt", str(tmp_path / "codes"))


def test_raw_text_with_a_mark(umlauts, umlaut_data):
    dictionary = Dictionary.load(str(umlaut_data / "dict.de.txt"))
    sentences = IndexedRawTextDataset(str(umlauts / "test.de"), dictionary)
    assert all(dictionary.unk() not in sentence for sentence in sentences)


@pytest.mark.parametrize(
    "command",
    ["generate", "preprocess", *(pytest.param(name, marks=LONG) for name in ("interactive", "validate", "score"))],
)
def test_a_reader_that_ends_early(tiny_data, tiny_text, tiny_checkpoint, tmp_path, command):
    model = (tiny_data, "--user-dir", "lwc_fairseq", "--path", tiny_checkpoint, "--cpu", "--max-tokens", "50")
    search = (*TASK[2:], "--max-len-b", "5", "--beam", "1")
    text = tiny_text / "train.en"
    flags = {
        "generate": (*model, *search),
        "interactive": (*model, *search),
        "validate": model,
        "score": ("--sys", text, "--ref", text),
        "preprocess": ("-s", "de", "-t", "en", f"--trainpref={tiny_text / 'train'}", "--destdir", tmp_path / "bin"),
    }[command]
    read, write = os.pipe()
    os.close(read)
    done = FRONT_DOOR.run([f"fairseq-{command}", *map(str, flags)], ROOT, "ba\n", output=write)
    os.close(write)
    assert done.returncode == -signal.SIGPIPE  # which a shell calls 141


def test_a_full_disk_under_the_output(tiny_text):
    command = ["lwc-fairseq", "compare", f"a={tiny_text / 'test.en'}", "--ref", str(tiny_text / "test.en")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=FRONT_DOOR.environment, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("\nlwc-fairseq: error: standard output: No space left on device\n")
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@LONG
def test_training_goes_on_without_its_reader(tiny_data, tmp_path):
    flags = (*TINY_LWC, *TASK[2:], *TINY_TRAINING, "--max-epoch", "3", "--log-interval", "1", "--save-dir", tmp_path)
    line = " ".join(map(str, ("fairseq-train", tiny_data, *flags)))
    done = run("bash", "-c", f"{line} | grep -m 1 'begin training'; exit ${{PIPESTATUS[0]}}")
    assert done.stderr == "the program that read the output has ended; training goes on\n"
    assert (tmp_path / "checkpoint_last.pt").exists()


@LONG
def test_a_reader_of_help_that_ends_early():
    line = "unset PYTHONUNBUFFERED; lwc-fairseq translate --help | true; exit ${PIPESTATUS[0]}"
    done = run("bash", "-c", line, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_a_closed_standard_input_is_an_empty_one(tiny_checkpoint, tiny_data):
    arguments = ["lwc-fairseq", "translate", str(tiny_checkpoint), "--data", str(tiny_data), "--cpu"]
    closed = f"import sys; sys.stdin, sys.argv = None, {arguments}"  # as Python has it after `<&-`
    done = run_python("-c", f"{closed}\nfrom lwc_fairseq.cli import main\nmain()")
    assert done.stdout == "" and "0 lines" in done.stderr
