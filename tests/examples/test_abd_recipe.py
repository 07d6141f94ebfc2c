"""The recipe of examples/abd, on a tiny corpus."""

import torch

from conftest import ROOT, run

RECIPE = ROOT / "examples" / "abd"
SMALL = ("--embed-dim", "8", "--hidden-dim", "8", "--init-std", "0.1", "--max-update", "1", "--cpu")


def test_every_row_of_table_2(tiny_data, tmp_path):
    printed = run("bash", RECIPE / "table2.sh", tiny_data, tmp_path, *SMALL).stdout
    table = (tmp_path / "table2.md").read_text()
    rows = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    assert rows == ["RNNSearch", "RNNSearch(R2L)", "ATNMT", "nsc_rt", "nsc_hs", "abd", "rr"]
    assert all(float(line.split("|")[2]) >= 0 for line in table.splitlines()[2:])
    assert "table2.md" in printed
    again = run("bash", RECIPE / "table2.sh", tiny_data, tmp_path, *SMALL)
    assert "training" not in again.stderr and (tmp_path / "table2.md").read_text() == table


def test_sweep_of_lambda_from_a_right_to_left_model(tiny_data, tmp_path):
    r2l, out = tmp_path / "right to left", tmp_path / "sweep of λ"
    run("bash", RECIPE / "train.sh", "r2l", tiny_data, r2l, *SMALL)
    start = {"R2L": str(r2l / "checkpoint_last.pt"), "WEIGHTS": "0.5 1.0"}
    run("bash", RECIPE / "sweep.sh", tiny_data, out, *SMALL, **start)
    assert [line.split("|")[1].strip() for line in (out / "sweep.md").read_text().splitlines()[2:]] == ["0.5", "1.0"]
    for weight in ("0.5", "1.0"):
        saved = torch.load(out / weight / "checkpoint_last.pt")["cfg"]
        assert saved["criterion"]["forward_weight"] == float(weight)
        assert saved["model"]["init_backward_from"] == start["R2L"]


def test_unknown_row_is_named(tiny_data, tmp_path):
    done = run("bash", RECIPE / "train.sh", "adb", tiny_data, tmp_path, check=False)
    assert done.returncode and "unknown row adb" in done.stderr
