"""Losses in the logs of fairseq-train, and their plot."""

import math

import pytest

from lwc_fairseq.experiments.training_log import Losses, limits, make_learning_curves, read_losses, read_sizes


def line(name: str, updates: int | str, loss: float | str) -> str:
    return f'date | INFO | {name} | {{"epoch": 1, "{name}_loss": "{loss}", "{name}_num_updates": "{updates}"}}\n'


def test_the_last_value_of_a_repeated_epoch_counts(tmp_path):
    log = tmp_path / "train.log"
    log.write_text(
        line("valid", 10, 5.5)
        + line("train", 10, 6)
        + 'date | INFO | train_inner | {"loss": "3.1", "num_updates": "15"}\n'
        + line("valid", 20, 4.25)
        + line("train", 20, 4.5)
        + line("valid", 20, 4.5)  # resumed
        + line("train", 20, 4.75)
        + line("valid", 30, "nan")
        + line("valid1", 30, 1.0)
        + line("valid", 40, 4.75)[:-20]  # broken off
    )
    losses = read_losses(log)
    assert losses.train == {10: 6.0, 20: 4.75}
    assert losses.valid == pytest.approx({10: 5.5, 20: 4.5, 30: math.nan}, nan_ok=True)
    assert losses.best() == {"valid_loss": 4.5, "train_loss": 4.75}


def test_the_first_validation_set_counts(tmp_path):
    """As it does for the best checkpoint. The settings at the start of the log name it."""
    log = tmp_path / "train.log"
    log.write_text("{'dataset': {'valid_subset': 'dev,valid'}}\n" + line("dev", 10, 5.5) + line("valid", 10, 4))
    assert read_losses(log).valid == {10: 5.5}


@pytest.mark.parametrize("loss", ["-1.5", "1e-05", "1.2e+20", "nan", "inf", "-inf"])
def test_all_numbers_are_read(tmp_path, loss):
    """What is not finite is never the best; fairseq writes updates from a million on with an exponent."""
    log, value = tmp_path / "train.log", float(loss)
    second = line("valid", "1.5e+06", 2) + line("train", "1.5e+06", 3)
    log.write_text(line("valid", 10, loss)[:-20] + line("valid", 10, loss) + line("train", 10, loss) + second)
    losses = read_losses(log)
    assert losses.valid == pytest.approx({10: value, 1500000: 2.0}, nan_ok=True)
    lowest = (value, value) if -math.inf < value < 2 else (2.0, 3.0)
    assert tuple(losses.best().values()) == lowest and read_sizes(log)[1] == 1500000
    make_learning_curves({"ours": losses, "_theirs": Losses(valid={10: value})}).savefig(tmp_path / "curves.png")


def test_a_training_without_any_number_has_no_best_loss():
    assert Losses(valid={10: math.nan}).best() == {}


def test_losses_that_are_missing(tmp_path):
    assert read_losses(tmp_path / "missing.log") == Losses() and Losses().best() == {}
    assert Losses(train={20: 3.0}, valid={10: 4.0}).best() == {"valid_loss": 4.0}


def test_the_plot_has_a_solid_and_a_dashed_line_for_each_row():
    losses = {
        f"_row {i}": Losses(train={10: 9.0, 20: 5.0 + i, 30: 4.0}, valid={10: 9.0, 20: 6.0, 30: 5.0}) for i in range(12)
    }
    (axes,) = make_learning_curves(losses).axes
    drawn = {(line.get_linestyle(), line.get_color(), *line.get_ydata()) for line in axes.lines}
    assert len(drawn) == 24 and len({line.get_color() for line in axes.lines}) == 12
    assert [text.get_text() for text in axes.get_legend().texts] == list(losses)


def test_the_scale_leaves_out_the_first_quarter():
    low, high = limits([Losses(train={10: 9.0, 50: 4.0, 100: 2.0}, valid={10: 8.0, 50: 5.0, 100: 4.5})])
    assert low == pytest.approx(2.0 - 0.15) and high == pytest.approx(5.0 + 0.15)
    low, high = limits([Losses(valid={10: 3.0})])
    assert low < 3 < high
