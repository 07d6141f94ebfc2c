"""The picture of the results page's losses, examples/multi30k/learning_curves.py."""

import importlib.util

from conftest import ROOT, refused
from lwc_fairseq.experiments.table_file import load_table

MULTI30K = ROOT / "examples" / "multi30k"
LOSSES = """model\tseed\tupdates\tvalidation loss\ttraining loss
lwc\t2\t10\t5.5\t6
lwc\t2\t20\t4.5\t5
lwc\t3\t10\t5.25\t7
rnnsearch\t2\t10\t3.5\t4
abd_rr\t2\t10\t7\t2
"""


def load_script():
    spec = importlib.util.spec_from_file_location("learning_curves", MULTI30K / "learning_curves.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_panel_shows_its_models_with_one_seed(tmp_path):
    script, table = load_script(), tmp_path / "losses.tsv"
    table.write_text(LOSSES)
    panels = script.draw(script.read(table, "2")).axes
    drawn = [[(line.get_linestyle(), list(line.get_ydata())) for line in axes.lines] for axes in panels]
    lwc = [("-", [5.5, 4.5]), ("--", [6.0, 5.0])]
    assert drawn == [lwc, [("-", [3.5]), ("--", [4.0])], [("-", [7.0]), ("--", [2.0])]]
    assert [axes.get_title() for axes in panels] == ["LWC", "DeepAtt", "ABD (RR)"]  # ABD would show RNNSearch again
    (panel,) = script.draw(script.read(table, "3")).axes  # the others would be empty
    assert panel.get_title() == "LWC" and list(panel.lines[0].get_ydata()) == [5.25]


def test_a_seed_that_the_table_does_not_have(tmp_path):
    table = tmp_path / "losses.tsv"
    table.write_text(LOSSES)
    message = refused("python", MULTI30K / "learning_curves.py", table, "--seed", "4", "--out", tmp_path / "curves.png")
    assert message == f"learning_curves: error: {table}: no losses with seed 4"


def test_a_model_without_a_panel_is_named(tmp_path):
    table = tmp_path / "losses.tsv"
    table.write_text(LOSSES + "transfomer\t2\t10\t5\t5\n")
    message = refused("python", MULTI30K / "learning_curves.py", table, "--out", tmp_path / "curves.png")
    assert message.startswith("learning_curves: error: transfomer: in no panel: add each model to PANELS in ")
    assert not (tmp_path / "curves.png").exists()


def test_the_panels_contain_all_trained_models():
    trained = {row.name for row in load_table(MULTI30K / "models.yaml").rows if row.arch}
    windows = {row.name for row in load_table(MULTI30K / "windows.yaml").rows}
    trained |= windows | {f"{name}_7000" for name in windows - {"abd_lwc_windows"}}  # that was not trained on so few
    for table in (ROOT / "examples" / "results").glob("multi30k_losses*.tsv"):
        trained |= {line.partition("\t")[0] for line in table.read_text().splitlines()[1:]}
    assert {model for models in load_script().PANELS.values() for model in models} == trained
