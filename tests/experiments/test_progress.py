"""The progress of a table, where there is no terminal."""

from types import SimpleNamespace

import pytest

from lwc_fairseq.experiments.progress import TRAINING_SHARE, Bars, Progress


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ('"update": 1e-05, "num_updates": "1.5e+06"', 0.75),
        ('"update": 1.5, "num_updates": "500000"', 0.25),
        ('"update": 1e-05, "loss": "nan", "num_updates": "1"', 1e-06),
    ],
)
def test_numbers_with_exponents(line, share):
    seen = []
    command = ["fairseq-train", "data", "--max-update", "2000000", "--max-epoch=10"]
    Progress(command, SimpleNamespace(bars=[], advance_to=seen.append)).see(
        f'2026-11-28 05:00:00 | INFO | train_inner | {{"epoch": 1, {line}, "lr": "0.1"}}'
    )
    assert seen == [pytest.approx(TRAINING_SHARE * share)]


def test_a_log_gets_whole_lines(capsys):
    with Bars(2, kept=0) as bars:
        bars.plain["mininterval"] = 0
        with bars.job(0, SimpleNamespace(name="ours, seed 1")) as bar:
            bar.advance_to(0.25)
            bar.advance_to(0.5)
    written = capsys.readouterr().err
    assert "\r" not in written and "\x1b" not in written and "\n\n" not in written
    lines = written.splitlines()
    assert lines[0].startswith("table, 2 runs:   0% |") and lines[-1].startswith("table, 2 runs:  50% |")
    assert any(line.startswith("ours, seed 1:  25% |") for line in lines)
