"""Word alignments of training data: fairseq-preprocess checks their files, and training uses them or says why not."""

import shutil

import pytest

from conftest import FAMILIES, LONG, TASK, TINY_TRAINING, refused, run

CRITERION = ("--criterion", "label_smoothed_cross_entropy_with_alignment")
WRONG = {
    "missing": (None, "{option}: no such file: {path}"),
    "shorter": (lambda lines: lines[1:], "{path} has 199 lines: each line"),
    "malformed": (lambda lines: [lines[0], "0-0 0:0\n", *lines[2:]], "{path}, line 2: 0:0: not a link such as 0-1"),
    "outside": (lambda lines: [*lines[:2], "0-0 0-99\n", *lines[3:]], "{path}, line 3: link 0-99, counted from 0, in"),
}


@pytest.fixture
def text(tiny_text, tmp_path):
    """Text with a link of the first words in each line of *.given."""
    folder = shutil.copytree(tiny_text, tmp_path / "text")
    for split in ("train", "valid"):
        number = len((folder / f"{split}.de").read_text().splitlines())
        (folder / f"{split}.given").write_text("0-0\n" * number)
    return folder


def preprocess(text, out, *flags):
    prefixes = (f"--trainpref={text / 'train'}", f"--validpref={text / 'valid'}", "--joined-dictionary")
    return ("fairseq-preprocess", "-s", "de", "-t", "en", *prefixes, "--destdir", out, *flags)


def training(data, out, *flags):
    model = (*TASK, *TINY_TRAINING, *FAMILIES["deepatt"], "--max-update", "2", "--save-dir", out)
    return ("fairseq-train", data, *model, *CRITERION, *flags)


@pytest.mark.parametrize("option", ["--align-suffix", pytest.param("--alignfile", marks=LONG)])
@pytest.mark.parametrize("edit, message", WRONG.values(), ids=WRONG)
def test_wrong_files_are_refused(text, tmp_path, edit, message, option):
    path = text / "train.given"
    lines = path.read_text().splitlines(keepends=True)
    path.unlink()
    if edit:
        path.write_text("".join(edit(lines)))
    value = path if option == "--alignfile" else "given"
    refusal = refused(*preprocess(text, tmp_path / "bin", option, value))
    assert message.format(option=f"{option} given" if option == "--align-suffix" else option, path=path) in refusal
    assert not (tmp_path / "bin").exists()


@LONG
@pytest.mark.parametrize("flag", [("--only-source",), ("--dataset-impl", "raw")], ids=str)
def test_options_that_alignments_do_not_go_with(text, tmp_path, flag):
    assert f"{flag[0]}" in refused(*preprocess(text, tmp_path / "bin", "--align-suffix", "given", *flag))


def test_only_training_needs_alignments(text, tmp_path):
    (text / "valid.given").unlink()
    done = run(*preprocess(text, tmp_path / "bin", "--align-suffix", "given"))
    assert f"warning: no such file: {text / 'valid.given'}: the set has no alignments" in done.stderr
    assert [path.name for path in (tmp_path / "bin").glob("*.align.*.idx")] == ["train.align.de-en.idx"]


@pytest.mark.parametrize("format", ["mmap", pytest.param("lazy", marks=LONG)])
def test_sentences_without_links(text, tmp_path, format):
    """Without any, too; a test set needs no alignments."""
    flags = ("--align-suffix", "given", f"--testpref={text / 'test'}", "--dataset-impl", format, "--workers", "2")
    for split in ("train", "valid"):
        path = text / f"{split}.given"
        path.write_text("\n" * len(path.read_text().splitlines()))
    done = run(*preprocess(text, tmp_path / "bin", *flags))
    assert f"warning: no such file: {text / 'test.given'}" in done.stderr
    done = run(*training(tmp_path / "bin", tmp_path / "out", "--load-alignments"))
    assert "| alignment_loss 0 |" in done.stdout + done.stderr


def test_training_without_alignments(tiny_data, text, tmp_path):
    message = refused(*training(tiny_data, tmp_path / "out", "--load-alignments"))
    assert message.endswith(
        f"no alignments of train in {tiny_data}: fairseq-preprocess writes them with --align-suffix"
    )
    assert refused(*training(tiny_data, tmp_path / "out")).endswith("learns from alignments: add --load-alignments")
    assert not list((tmp_path / "out").glob("*"))


@LONG
def test_training_with_the_alignments_of_other_sentences(text, tmp_path):
    data = tmp_path / "bin"
    run(*preprocess(text, data, "--align-suffix", "given"))
    for kind in ("bin", "idx"):
        (data / f"valid.align.de-en.{kind}").replace(data / f"train.align.de-en.{kind}")
    done = run(*training(data, tmp_path / "out", "--load-alignments"), check=False)
    assert "--load-alignments: no alignments of valid in" in done.stdout + done.stderr
    assert "20 alignments for the 200 sentences of train" in done.stderr.splitlines()[-1]
