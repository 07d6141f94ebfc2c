"""The recipe of examples/deepatt, on a tiny corpus."""

import torch

from conftest import ROOT, run

RECIPE = ROOT / "examples" / "deepatt"
SMALL = ("--embed-dim", "8", "--hidden-dim", "8", "--max-update", "2", "--cpu")


def test_train_and_evaluate(tiny_data, tmp_path):
    run("bash", RECIPE / "train.sh", "wideatt", tiny_data, tmp_path / "adadelta", *SMALL)
    run("bash", RECIPE / "train.sh", "wideatt", tiny_data, tmp_path / "adam", *SMALL, "--seed", "2", OPTIMIZER="adam")
    first, second = (tmp_path / name / "checkpoint_last.pt" for name in ("adadelta", "adam"))
    optimizers = [torch.load(path)["cfg"]["optimizer"] for path in (first, second)]
    names = [optimizer["_name"] if isinstance(optimizer, dict) else optimizer.optimizer for optimizer in optimizers]
    assert names == ["adadelta", "adam"]

    flags = ("--cpu", "--unnormalized", "--max-len-b", "5")
    scored = run("bash", RECIPE / "evaluate.sh", f"{first}:{second}", tiny_data, tmp_path / "both", *flags).stdout
    assert '"name": "BLEU"' in scored and "tok:none" in scored
    assert len((tmp_path / "both" / "H.txt").read_text().splitlines()) == 20


def test_unknown_optimizer_is_named(tiny_data, tmp_path):
    done = run("bash", RECIPE / "train.sh", "deepatt", tiny_data, tmp_path, OPTIMIZER="sgd", check=False)
    assert done.returncode and "OPTIMIZER=sgd: choose adadelta or adam" in done.stderr
