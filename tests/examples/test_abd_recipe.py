"""The recipe of examples/abd, and the tables of its paper, on a tiny corpus."""

import json

import torch

from conftest import LONG, ROOT, run
from lwc_fairseq.experiments.table_file import load_table

RECIPE = ROOT / "examples" / "abd"
TABLES = ROOT / "examples" / "tables"
SMALL = ("--embed-dim", "8", "--hidden-dim", "8", "--init-std", "0.1", "--max-update", "1", "--cpu")


def make_table(name, data, out, *flags):
    """One update a row; the rows of the table as measured."""
    profile, train = TABLES / "profiles" / "demo.yaml", f"--train={' '.join(SMALL)}"
    run("lwc-fairseq", "table", TABLES / name, "--data", data, "--out", out, "--profile", profile, train, *flags)
    return json.loads((out / "table.json").read_text())["rows"]


@LONG
def test_every_row_of_table_2(tiny_data, tmp_path):
    rows = make_table("abd_table2.yaml", tiny_data, tmp_path)
    measured = [row["name"] for row in rows if row["value"] is not None]
    assert measured == [row.name for row in load_table(TABLES / "abd_table2.yaml").rows if row.runs]
    saved = torch.load(tmp_path / "nsc_hs" / "seed1" / "checkpoint_best.pt")["cfg"]["model"]
    assert saved["reverse_model"] == str(tmp_path / "r2l" / "seed1" / "checkpoint_best.pt")


@LONG
def test_sweep_of_lambda(tiny_data, tmp_path):
    rows = make_table("abd_figure2.yaml", tiny_data, tmp_path, "--rows", "lambda_0.5", "lambda_1.0")
    assert [row["x"] for row in rows] == [0.5, 1.0] and (tmp_path / "table.png").exists()
    for name, weight in (("lambda_0.5", 0.5), ("lambda_1.0", 1.0)):
        saved = torch.load(tmp_path / name / "seed1" / "checkpoint_best.pt")["cfg"]
        assert saved["criterion"]["forward_weight"] == weight


@LONG
def test_a_row_by_hand_from_a_right_to_left_model(tiny_data, tmp_path):
    r2l, out = tmp_path / "right to left", tmp_path / "abd"
    run("bash", RECIPE / "train.sh", "r2l", tiny_data, "--out", r2l, "--", *SMALL)
    start = str(r2l / "checkpoint_last.pt")
    run("bash", RECIPE / "train.sh", "abd", tiny_data, "--out", out, "--", *SMALL, R2L=start)
    assert torch.load(out / "checkpoint_last.pt")["cfg"]["model"]["init_backward_from"] == start


def test_unknown_row_is_named(tiny_data):
    done = run("bash", RECIPE / "train.sh", "adb", tiny_data, check=False)
    assert done.returncode and "unknown row adb" in done.stderr
