"""The Multi30k recipe on a slice of the real data, which is no part of the repository."""

import pytest

from conftest import ROOT, run

MULTI30K = ROOT.parent / "shared" / "multi30k"


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="Multi30k is not beside the repository")
def test_recipe_on_a_slice(tmp_path):
    text = tmp_path / "text"
    text.mkdir()
    for split, size in (("train", 300), ("val", 30), ("test_2016_flickr", 12)):
        for language in ("de", "en"):
            lines = (MULTI30K / f"{split}.{language}").read_text(encoding="utf-8").splitlines(keepends=True)
            (text / f"{split}.{language}").write_text("".join(lines[:size]), encoding="utf-8")

    recipe, data = ROOT / "examples" / "multi30k", tmp_path / "data"
    run("bash", recipe / "prepare.sh", text, data, MERGES="200")
    assert "is there already" in run("bash", recipe / "prepare.sh", text, data).stdout
    for model, *flags in (("deepnmt", "--attention-layers", "2"), ("lstm",)):
        run("bash", recipe / "train.sh", model, data, tmp_path / model, *flags, "--max-update", "1")
    small = ("--layers", "2", "--embed-dim", "32", "--max-tokens", "2000", "--max-update", "3")
    run("bash", recipe / "train.sh", "lwc", data, tmp_path / "lwc", *small)
    scored = run("bash", recipe / "evaluate.sh", tmp_path / "lwc" / "checkpoint_best.pt", data).stdout
    assert '"name": "BLEU"' in scored and "tok:none" in scored
    assert len((tmp_path / "lwc" / "hypotheses.en").read_text().splitlines()) == 12


def test_missing_data_is_named(tmp_path):
    done = run("bash", ROOT / "examples" / "multi30k" / "prepare.sh", tmp_path, tmp_path / "data", check=False)
    assert done.returncode and f"{tmp_path}/train.de is missing" in done.stderr
    assert not (tmp_path / "data").exists()
