"""The recipe of examples/deepatt, on a tiny corpus."""

import torch

from conftest import LONG, ROOT, run

RECIPE = ROOT / "examples" / "deepatt"
SMALL = ("--embed-dim", "8", "--hidden-dim", "8", "--max-update", "2", "--cpu")


@LONG
def test_train_and_evaluate(tiny_text, tiny_data, tmp_path):
    first, second = (tmp_path / name / "checkpoint_last.pt" for name in ("adadelta", "adam"))
    train = ("bash", RECIPE / "train.sh", "wideatt", tiny_data, "--out")
    run(*train, first.parent, "--", *SMALL)
    run(*train, second.parent, "--", *SMALL, "--seed", "2", OPTIMIZER="adam")
    optimizers = [torch.load(path)["cfg"]["optimizer"] for path in (first, second)]
    names = [optimizer["_name"] if isinstance(optimizer, dict) else optimizer.optimizer for optimizer in optimizers]
    assert names == ["adadelta", "adam"]

    evaluate = ("bash", RECIPE.parent / "evaluate.sh", f"{first}:{second}", tiny_data, "--out", tmp_path / "both")
    scored = run(*evaluate, "--", "--cpu", "--unnormalized", "--max-len-b", "5").stdout
    assert '"name": "BLEU"' in scored and "tok:none" in scored
    of_ensemble = tmp_path / "both" / "test.ensemble"  # beside what one model would have
    assert len(of_ensemble.with_suffix(".ensemble.txt").read_text().splitlines()) == 20
    assert of_ensemble.with_suffix(".ensemble.reference").read_text() == (tiny_text / "test.en").read_text()
    run(*evaluate[:2], f"{tmp_path}/none.pt:{first}", *evaluate[3:], check=False)
    assert of_ensemble.with_suffix(".ensemble.score.json").read_text() in scored


def test_unknown_optimizer_is_named(tiny_data):
    done = run("bash", RECIPE / "train.sh", "deepatt", tiny_data, OPTIMIZER="sgd", check=False)
    assert done.returncode and "OPTIMIZER=sgd: choose adadelta or adam" in done.stderr
