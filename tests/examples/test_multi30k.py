"""The Multi30k recipe on a slice of the real data, which is no part of the repository."""

import json
import shutil

import pytest

from conftest import LONG, ROOT, run
from lwc_fairseq.experiments.table_file import load_table

MULTI30K = ROOT.parent / "shared" / "multi30k"
RECIPE = ROOT / "examples" / "multi30k"
TRAINED = [row.name for row in load_table(RECIPE / "models.yaml").rows if row.arch]


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="Multi30k is not beside the repository")
@LONG
@pytest.mark.parametrize(
    ("flags", "rows"),
    [((), [*TRAINED, "atnmt"]), (("--sentencepiece",), ["lwc"])],
    ids=["subword-nmt", "sentencepiece"],
)
def test_recipe_on_a_slice(tmp_path, flags, rows):
    text, out = tmp_path / "text", tmp_path / "out"
    text.mkdir()
    for split, size in (("train", 300), ("val", 30), ("test_2016_flickr", 12)):
        for language in ("de", "en"):
            lines = (MULTI30K / f"{split}.{language}").read_text(encoding="utf-8").splitlines(keepends=True)
            (text / f"{split}.{language}").write_text("".join(lines[:size]), encoding="utf-8")

    prepare = ("bash", RECIPE / "prepare.sh", "--from", text, "--out", out, *flags)
    assert run(*prepare, MERGES="400").stdout.splitlines()[-1] == f"{out}/data: 300 training pairs"
    assert run(*prepare, MERGES="400").stdout.count("done before") == 3
    kind = "joint_sentencepiece" if flags else "joint_bpe"
    other = run(*prepare, check=False)
    assert other.returncode and f"{out}/bpe was made with {kind} 400, not {kind} 8000: name another" in other.stderr

    profile = tmp_path / "narrow.yaml"
    profile.write_text((RECIPE / "narrow.yaml").read_text().replace("average: 5", "average: 0"))  # no epoch ends
    narrow = ("--profile", profile, "--train=--cpu --max-update 2 --total-num-update 2 --warmup-updates 1")
    run("bash", RECIPE / "train.sh", "--out", out, "--", "--generate=--cpu --beam 1", *narrow, "--rows", *rows)
    assert "failed" not in (out / "table" / "table.md").read_text()
    assert {path.parts[-3] for path in (out / "table").glob("*/seed1/checkpoint_best.pt")} == {*rows} & {*TRAINED}

    lines = (out / "table" / rows[0] / "seed1" / "generated.txt").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.startswith("H-") and ("▁" in line or "@@" in line)]

    checkpoint = out / "table" / rows[0] / "seed1" / "checkpoint_best.pt"
    scored = run("bash", RECIPE / "evaluate.sh", checkpoint, "--out", out, "--", "--cpu").stdout
    assert '"name": "BLEU"' in scored and "tok:none" in scored
    translations = (checkpoint.parent / "checkpoint_best.test.txt").read_text()
    assert len(translations.splitlines()) == 12 and "@@" not in translations and "▁" not in translations
    run("bash", RECIPE.parent / "evaluate.sh", checkpoint, out / "data", "--out", tmp_path / "any", "--", "--cpu")
    words = (out / "text" / "test.en").read_text(encoding="utf-8")
    assert (tmp_path / "any" / "test.reference").read_text(encoding="utf-8") == words
    raw = run("lwc-fairseq", "translate", checkpoint, "--detokenize", stdin="Ein Mann läuft.\n").stdout
    assert len(raw.splitlines()) == 1 and "▁" not in raw

    shutil.copytree(out / "table" / rows[0], out / "table" / "row_of_another_table")
    packs = out / "packs"
    packs.mkdir()
    (packs / "multi30k_row_of_another_table.zip").touch()
    said = run("bash", RECIPE / "weights.sh", "--out", out).stderr
    assert f"{out / 'table' / 'table.json'}: it has no results of seed 1 of a row row_of_another_table" in said
    trained = {*rows} & {*TRAINED}
    listed = {line.split()[1] for line in (packs / "SHA256SUMS").read_text().splitlines()}
    assert listed == {f"multi30k_{row}.zip" for row in trained}
    pack = packs / f"multi30k_{rows[0]}.zip"
    assert run("lwc-fairseq", "translate", pack, "--detokenize", stdin="Ein Mann läuft.\n").stdout == raw
    row = next(row for row in json.loads((out / "table" / "table.json").read_text())["rows"] if row["name"] == rows[0])
    assert f"{row['runs'][0]['bleu']} BLEU" in (packs / f"{rows[0]}.md").read_text()
    (out / "table").rename(out / "other")
    run("bash", RECIPE / "weights.sh", "--out", out, "--table", out / "other")
    assert (out / "other" / "packs" / pack.name).exists()


def test_card_has_the_flags_in_the_order_of_the_commands(tmp_path):
    of_all = {"optimizer": "--optimizer adam", "train": "--max-epoch 40", "generate": "--beam 5"}
    more = {"more of train": "--max-epoch 60", "more of generate": "--beam 4"}
    of_row = {
        "arch": "lwc_small",
        "own optimizer": "--optimizer sgd",
        "train": "--layers 2",
        "chosen by trials": "--lr 1",
    }
    score = {"seed": 1, "bleu": 1.0, "chrf": 2.0, "length_ratio": 3.0, "updates": 4}
    row = {"name": "lwc", "label": "LWC", "parameters": 5, "runs": [score]}
    facts = dict.fromkeys(("published_on", "hardware", "date", "versions"), "")
    table = {"rows": [row], "flags": {**of_all, **more}, "row_flags": {"lwc": of_row}, **facts}
    (tmp_path / "table.json").write_text(json.dumps(table))
    card = run("python", RECIPE / "card.py", tmp_path / "table.json", "lwc").stdout
    assert "`--arch lwc_small --optimizer sgd --max-epoch 40 --layers 2 --lr 1 --max-epoch 60`" in card
    assert "`--beam 5 --beam 4`" in card


def test_missing_data_is_named(tmp_path):
    done = run("bash", RECIPE / "prepare.sh", "--from", tmp_path, "--out", tmp_path / "out", check=False)
    assert done.returncode and "there is no train.de and no train.lc.norm.tok.de" in done.stderr
    missing = tmp_path / "missing"
    done = run("bash", RECIPE / "prepare.sh", "--from", missing, "--out", tmp_path / "out", check=False)
    assert f"--from {missing}: there is no such folder" in done.stderr
    done = run("bash", RECIPE / "prepare.sh", "--from", tmp_path, "--", "--sentencepiece", check=False)
    assert done.returncode == 2 and "prepare.sh: unknown argument --; --help lists the arguments" in done.stderr
    done = run("bash", RECIPE / "evaluate.sh", "none.pt", "--out", tmp_path / "out", check=False)
    assert done.stderr == f"evaluate.sh: {tmp_path / 'out' / 'data'} is missing: run prepare.sh first\n"
    assert not (tmp_path / "out" / "data").exists()
