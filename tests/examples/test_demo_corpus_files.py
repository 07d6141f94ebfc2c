"""What examples/quickstart/corpus.py writes, and what it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest

import corpus

SUFFIXES = ("de", "en", "align")


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_same_seed_same_files(tmp_path):
    sizes = ["--train", "300", "--valid", "20", "--test", "20"]
    for name, seed in (("one", "5"), ("two", "5"), ("three", "6")):
        corpus.main(["--out", str(tmp_path / name), "--seed", seed, *sizes])
    assert written(tmp_path / "one") == written(tmp_path / "two")
    assert written(tmp_path / "one") != written(tmp_path / "three")


def test_same_files_whatever_the_hash_seed_and_the_folder(tmp_path):
    for name in "12":
        command = [sys.executable, corpus.__file__, "--out", name]
        command += ["--train", "200", "--valid", "10", "--test", "10"]
        subprocess.run(command, cwd=tmp_path, env={"PYTHONHASHSEED": name}, check=True, capture_output=True)
    assert written(tmp_path / "1") == written(tmp_path / "2")


def test_files_and_summary(tmp_path, capsys):
    corpus.main(["--out", str(tmp_path / "new" / "folder"), "--train", "50", "--valid", "7", "--test", "9"])
    files = written(tmp_path / "new" / "folder")
    assert sorted(files) == sorted(f"{split}.{suffix}" for split in corpus.SPLITS for suffix in SUFFIXES)
    for split, size in zip(corpus.SPLITS, (50, 7, 9), strict=True):
        for suffix in SUFFIXES:
            text = files[f"{split}.{suffix}"].decode("utf-8")
            assert text.endswith("\n") and "\r" not in text
            assert len(text.splitlines()) == size
    (line,) = capsys.readouterr().out.splitlines()
    assert "train 50, valid 7, test 9 sentences" in line


def test_empty_corpus(tmp_path):
    corpus.main(["--out", str(tmp_path), "--train", "0", "--valid", "0", "--test", "0"])
    assert set(written(tmp_path).values()) == {b""}


def test_an_interrupted_run_leaves_the_old_file(tmp_path):
    path = tmp_path / "train.de"
    path.write_text("old\n")

    def lines():
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corpus.write_lines(path, lines())
    assert written(tmp_path) == {"train.de": b"old\n"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--out"),
        (["--out", "x", "--train", "-1"], "'-1' is not a whole number from 0"),
        (["--out", "x", "--test", "many"], "'many' is not a whole number from 0"),
        (["--out", "x", "--seed", "1.5"], "'1.5' is not a whole number from 0"),
        (["--out", "x", "--train", "2000000"], "add up to more than 1000000 sentences"),
        (["--out", __file__], "is a file; name a folder"),
        (["--out", str(Path(__file__) / "x"), "--train", "1"], "cannot write to --out"),
    ],
)
def test_bad_arguments(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        corpus.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.iterdir())
