"""Dictionaries: what is written can be read again, and what cannot be read is named by file and line."""

import re
import shutil

import pytest
from fairseq.data import Dictionary

from conftest import FAMILIES, LONG, TASK, TINY_TRAINING, hypotheses, refused, run
from lwc_fairseq import load
from lwc_fairseq_compat import UserError

MARK = b"\xef\xbb\xbf"
MALFORMED = {
    "empty line": (b"ba 5\n\nde 4\n", 2, "an empty line"),
    "no count": (b"ba 5\nde\n", 2, "'de' has no count"),
    "flag without a count": (b"ba 5\nba #fairseq:overwrite\n", 2, "'ba' has no count"),
    "no number": (b"ba 5\nde many\n", 2, "'many', the count of 'de', is not a whole number"),
    "tab": (b"ba\t5\nde\t4\n", 1, r"'ba\t5': a tab stands for the space"),
    "word twice": (b"ba 5\nde 4\nba 3\n", 3, "'ba' has been there before"),
    "symbol of fairseq": (b"ba 5\n<unk> 0\n", 2, "'<unk>' is a symbol that fairseq itself adds"),
    "Latin-1": (MARK + b"ba 5\n\xe4 3\n", 2, "not UTF-8"),
}


def preprocess(text, out, *flags):
    return ("fairseq-preprocess", "-s", "de", "-t", "en", f"--trainpref={text / 'train'}", "--destdir", out, *flags)


@pytest.mark.parametrize("content, line, mistake", MALFORMED.values(), ids=MALFORMED)
def test_malformed_lines_are_named(tmp_path, content, line, mistake):
    path = tmp_path / "given.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(f"{path}, line {line}: {mistake}")):
        Dictionary.load(str(path))


@pytest.mark.parametrize("option", ["--srcdict", pytest.param("--tgtdict", marks=LONG)])
def test_files_that_are_none(tiny_text, tmp_path, option):
    path = tmp_path / "given.txt"
    command = preprocess(tiny_text, tmp_path / "bin", option, path)
    assert refused(*command) == f"fairseq-preprocess: error: {option} {path}: no such file"
    path.write_text("")
    assert refused(*command) == f"fairseq-preprocess: error: dictionary {path}: the file is empty"
    path.write_text("ba 5\nde\n")
    assert f"error: dictionary {path}, line 2: 'de' has no count" in refused(*command)
    assert not (tmp_path / "bin").exists()


def test_commands_name_the_line(tiny_data, tiny_checkpoint, tmp_path):
    data = shutil.copytree(tiny_data, tmp_path / "bin")
    with (data / "dict.en.txt").open("a") as file:
        file.write("BA\n")
    expected = f"{data / 'dict.en.txt'}, line 45: 'BA' has no count"
    flags = (data, *TASK, "--cpu", "--max-tokens", "400")
    assert expected in refused(
        "fairseq-train", *flags, *TINY_TRAINING, *FAMILIES["lwc"], "--save-dir", tmp_path / "out"
    )
    assert expected in refused("fairseq-interactive", *flags, "--path", tiny_checkpoint)
    with pytest.raises(UserError, match="line 45: 'BA' has no count"):
        load(tiny_checkpoint, data)


def test_flags_and_marks(tiny_text, tiny_data, tmp_path):
    """A word that is there twice keeps its second number; a mark is no part of the first word."""
    given = tmp_path / "given.txt"
    first, *others = (tiny_data / "dict.de.txt").read_text().splitlines(keepends=True)
    word = first.split()[0]
    given.write_bytes(MARK + "".join([first, *others, f"{word} 7 #fairseq:overwrite\n"]).encode())
    valid = f"--validpref={tiny_text / 'valid'}"
    done = run(*preprocess(tiny_text, tmp_path / "bin", valid, "--srcdict", given, "--joined-dictionary"))
    assert done.stdout.count(" 0.0% replaced") + done.stderr.count(" 0.0% replaced") == 4
    for language in ("de", "en"):
        assert (tmp_path / "bin" / f"dict.{language}.txt").read_bytes() == given.read_bytes().removeprefix(MARK)
    update = ("--max-update", "1", "--save-dir", tmp_path / "out")
    run("fairseq-train", tmp_path / "bin", *TASK, *TINY_TRAINING, *FAMILIES["lwc"], *update)
    checkpoint = tmp_path / "out" / "checkpoint_last.pt"
    assert load(checkpoint).src_dict.index(word) == 4 + 1 + len(others)
    flags = (*TASK, "--path", checkpoint, "--cpu", "--max-len-b", "5")
    assert len(hypotheses(run("fairseq-interactive", tmp_path / "bin", *flags, stdin="ba\n").stdout)) == 1


def test_several_training_sets(tiny_text, tmp_path):
    both = f"{tiny_text / 'train'},{tiny_text / 'train'}"
    message = refused("fairseq-preprocess", "-s", "de", "-t", "en", "--trainpref", both, "--destdir", tmp_path / "bin")
    assert message.startswith(f"fairseq-preprocess: error: --trainpref {both}: give one prefix")
    assert not (tmp_path / "bin").exists()
