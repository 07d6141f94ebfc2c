"""The scripts in examples/published, with the small checkpoints in the form of the public ones in place of those."""

import bz2
import shutil
import tarfile

import pytest
import torch

from conftest import LONG, ROOT, run

PUBLISHED = ROOT.parent / "shared" / "published_weights"
pytestmark = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="no checkpoints of jarfo/joint beside the repository")


def checkpoint(folder, name, source, target) -> bytes:
    """A small checkpoint, as if it were of these languages."""
    state = torch.load(PUBLISHED / f"{name}_2019.pt")
    state["args"].source_lang, state["args"].target_lang = source, target
    torch.save(state, folder / "checkpoint.pt")
    return (folder / "checkpoint.pt").read_bytes()


def make_test_set(folder, source, target, archive, form):
    """An archive with a binary test set, inside of a folder."""
    text = folder / "text"
    text.mkdir()
    shutil.copy(PUBLISHED / "source.de", text / f"test.{source}")
    shutil.copy(PUBLISHED / "reference.en", text / f"test.{target}")
    flags = (
        "-s",
        source,
        "-t",
        target,
        "--testpref",
        text / "test",
        "--destdir",
        folder / "bin",
        "--joined-dictionary",
    )
    run("fairseq-preprocess", *flags, "--srcdict", PUBLISHED / "dict.de.txt", "--dataset-impl", form)
    with tarfile.open(folder / archive, "w:gz") as tar:
        tar.add(folder / "bin", arcname=f"some/{source}-{target}")


def translate(folder, script):
    """Run a script with the length penalty of the expected translations."""
    flags = ("--from", folder, "--out", folder / "out", "--", "--cpu", "--lenpen", "1.7")
    return run("bash", ROOT / "examples" / "published" / script, *flags)


def assert_translated(folder, done, reported, model):
    expected = [line.split("\t")[1] for line in (PUBLISHED / f"{model}.hypotheses.tsv").read_text().splitlines()]
    translations = (folder / "out" / "test.txt").read_text().splitlines()
    assert f"the authors report {reported} (Fonollosa et al., 2019)" in done.stdout
    assert 10 < float(done.stdout.splitlines()[-1]) < 30
    assert translations == expected


def test_iwslt14(tmp_path):
    """A test set in the format of fairseq in 2019."""
    shutil.copy(PUBLISHED / "local_2019.pt", tmp_path / "local_joint_attention_iwslt_de_en.pt")
    make_test_set(tmp_path, "de", "en", "iwslt14.31K.de-en.test.tgz", "cached")
    assert_translated(tmp_path, translate(tmp_path, "iwslt14_de_en.sh"), 35.7, "local")


@LONG
def test_wmt16(tmp_path):
    """A model in a `.bz2`, and a BLEU after splitting compounds."""
    (tmp_path / "local_joint_attention_wmt_en_de_big.pt.bz2").write_bytes(
        bz2.compress(checkpoint(tmp_path, "local", "en", "de"))
    )
    make_test_set(tmp_path, "en", "de", "wmt16_en_de_bpe32k.test.tgz", "mmap")
    done = translate(tmp_path, "wmt16_en_de.sh")
    assert_translated(tmp_path, done, 29.7, "local")
    reference = (tmp_path / "out" / "test.reference").read_text()
    scored = (tmp_path / "out" / "test.reference.scored").read_text()
    assert "##AT##-##AT##" in scored and scored.replace(" ##AT##-##AT## ", "-") == reference


@LONG
def test_wmt14(tmp_path):
    """A model in two parts."""
    whole = checkpoint(tmp_path, "joint", "en", "fr")
    for end, part in (("aa", whole[:1000]), ("ab", whole[1000:])):
        (tmp_path / f"local_joint_attention_wmt_en_fr_big.pt_{end}").write_bytes(part)
    make_test_set(tmp_path, "en", "fr", "wmt14_en_fr.test.tgz", "mmap")
    assert_translated(tmp_path, translate(tmp_path, "wmt14_en_fr.sh"), 43.3, "joint")
