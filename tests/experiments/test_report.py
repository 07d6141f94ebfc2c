"""The page of a finished table, which contains all that it shows."""

import html
import json
import re
import shutil
from collections import Counter

import pytest

from browser import Seen, look_at, opened
from conftest import TASK, TINY_TRAINING, refusal, refused, run
from lwc_fairseq.experiments.page import table_page
from lwc_fairseq.experiments.report import read_table, write_report
from lwc_fairseq.experiments.training_log import Losses, make_learning_curves
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig, ConcatTranslationTask
from sentences import generated, worse


def row(name, **values):
    empty = ("value", "deviation", "p", "parameters", "updates", "published", "failed")
    return {"name": name, "label": name, "runs": [], **dict.fromkeys(empty), **values}


def run_with(chrf):
    return {
        "seed": 1,
        "chrf": chrf,
        "valid_loss": 4.25,
        "train_loss": 3.5,
        "signature": "nrefs:1|tok:none",
        "chrf_signature": "nrefs:1|nc:6",
    }


@pytest.fixture
def finished(tmp_path):
    return make_table(tmp_path)


def make_table(folder):
    """A table of two rows that were measured, one that failed, and one that is published."""
    about = {
        "title": "A <table>",
        "metric": "BLEU",
        "paper": "a paper",
        "published_on": "",
        "measured_on": "data",
        "date": "2026-11-21",
        "hardware": "2 cores",
        "versions": "these",
        "command": "lwc-fairseq table t.yaml",
        "seeds": 1,
        "flags": {"train": "--max-update 500"},
        "baseline": "base",
        "row_flags": {"ours": {"arch": "rnnsearch", "train": "--max-update 850"}, "base": {"arch": "abd"}},
        "rows": [
            row("ours", value=71.25, runs=[run_with(81.54)], parameters=19070464, p=0.004),
            row("base", value=60.0, runs=[run_with(78.9)], updates=1850),
            row("broken", failed="the reason"),
            row("half", value=50.0, runs=[run_with(64.15)], planned=2, failed="the reason"),
            row("theirs", published=35.07),
        ],
    }
    (folder / "table.json").write_text(json.dumps(about))
    for name, words in (("ours", "x here"), ("base", "cat")):
        (folder / name / "seed1").mkdir(parents=True)
        (folder / name / "seed1" / "generated.txt").write_text(generated(worse(words)))
    make_learning_curves({"ours": Losses(valid={70: 4.5})}).savefig(folder / "learning_curves.png")
    return folder


def test_the_page_has_all_and_asks_for_nothing(finished):
    write_report(finished, finished / "report.html")
    page = (finished / "report.html").read_text()
    assert "<title>A &lt;table&gt;</title>" in page and '<table class="sortable">' in page
    for text in ("19.07M", "50.00 (1 of 2 runs, failed)", "35.07", "Learning curves", "By source length", "Line "):
        assert text in page, text
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert page.count("<img") == page.count('src="data:image/png;base64,') == 2


def test_the_page_has_what_table_md_has(finished):
    """The same cells; the signatures, the baseline of p, and the flags of each row."""
    write_report(finished, finished / "report.html")
    page = html.unescape((finished / "report.html").read_text())
    markdown = table_page(read_table(finished).record)
    lines = [line[2:-2].split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    header, _, *rows = lines
    losses = ("validation loss", "training loss")
    assert header == ["", "BLEU", "p, against base", "chrF2", "parameters", "updates", *losses, "published BLEU"]
    shown = re.findall("<tr>(.*?)</tr>", page)[: 1 + len(rows)]
    assert re.findall("<th>(.*?)</th>", shown[0]) == header
    for row, cells in zip(shown[1:], rows, strict=True):
        assert re.findall("<td>(.*?)</td>", row) == cells
    for text in ("nrefs:1|tok:none", "nrefs:1|nc:6", "10,000 trials, against base", "--max-update 850", "rnnsearch"):
        assert text in page and text in markdown, text


def test_the_page_has_the_words_by_part_of_speech(finished):
    record = json.loads((finished / "table.json").read_text())
    for result in record["rows"]:
        result["parts"] = {"NN&VB": {"values": [61.0, 44.25, 35.5, 11.0], "published": []}}
    record |= {"parts_of_speech": ["NN&VB"], "tagger": "tag <it>"}
    (finished / "table.json").write_text(json.dumps(record))
    write_report(finished, finished / "report.html")
    words = (finished / "report.html").read_text().partition("<h2>Words by part of speech</h2>")[2]
    header, first = re.findall("<tr>(.*?)</tr>", words)[:2]
    assert re.findall("<th>(.*?)</th>", header) == ["tags", "", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"]
    assert re.findall("<td>(.*?)</td>", first) == ["NN&amp;VB", "ours", "61.00", "44.25", "35.50", "11.00"]
    assert "Tagger: <code>tag &lt;it&gt;</code>." in words


def test_with_several_seeds_it_says_that_the_first_one_is_shown(finished):
    def page() -> str:
        write_report(finished, finished / "report.html")
        return (finished / "report.html").read_text()

    assert "first run of each row" not in page()
    record = json.loads((finished / "table.json").read_text())
    (finished / "table.json").write_text(json.dumps({**record, "seeds": 2}))
    assert "show the first run of each row, which has seed 1" in page()


def test_a_package_that_was_moved_is_given_anew(finished, tmp_path):
    record = json.loads((finished / "table.json").read_text())
    (finished / "table.json").write_text(json.dumps({**record, "user_dirs": [str(tmp_path / "gone")]}))
    assert "gone: there is no such folder" in refusal("report", finished)
    assert "table.json: no such file" in refusal("report", tmp_path / "gone")
    assert not (tmp_path / "gone").exists()
    (tmp_path / "moved_models").mkdir()
    (tmp_path / "moved_models" / "__init__.py").touch()
    run("lwc-fairseq", "report", finished, "--user-dir", tmp_path / "moved_models")


def test_the_record_of_an_earlier_version_can_be_read(finished):
    record = json.loads((finished / "table.json").read_text())
    del record["baseline"], record["row_flags"]
    (finished / "table.json").write_text(json.dumps(record))
    write_report(finished, finished / "report.html")
    assert "p, against the baseline" in (finished / "report.html").read_text()


def test_models_that_the_table_has_not_scored_are_left_out(finished):
    for name in ("ours", "base", "broken"):
        (finished / name / "seed1").mkdir(parents=True, exist_ok=True)
        (finished / name / "seed1" / "checkpoint_best.pt").touch()
    assert [label for label, _ in read_table(finished).checkpoints()] == ["ours", "base"]


def test_a_folder_without_a_table_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"table\.json: no such file; `lwc-fairseq table` writes it"):
        read_table(tmp_path)
    (tmp_path / "table.json").write_text('{"title": 1\n')
    with pytest.raises(ValueError, match=r"table\.json, line \d: not JSON"):
        read_table(tmp_path)
    for content in ('{"title": 1}', '{"rows": ["x"]}', '{"rows": [{"tests": null}]}'):
        (tmp_path / "table.json").write_text(content)
        with pytest.raises(ValueError, match=r"table\.json: `lwc-fairseq table` did not write this file"):
            read_table(tmp_path)


def test_command(finished):
    said = run("lwc-fairseq", "report", finished).stdout
    assert said.strip() == f"wrote {finished / 'report.html'}" and (finished / "report.html").exists()


def test_data_that_is_somewhere_else(finished, tiny_data, tiny_checkpoint):
    shutil.copy(tiny_checkpoint, finished / "ours" / "seed1" / "checkpoint_best.pt")
    assert refused("lwc-fairseq", "report", finished) == "lwc-fairseq: error: --data data: no such folder"
    run("lwc-fairseq", "report", finished, "--data", tiny_data)
    assert "attention of ours" in (finished / "report.html").read_text()


def test_a_set_and_references_other_than_those_of_the_data(finished, tiny_data, tiny_checkpoint):
    """The data have no test set, and the table was scored against references of its own."""
    shutil.copy(tiny_checkpoint, finished / "ours" / "seed1" / "checkpoint_best.pt")
    data = finished / "data"
    shutil.copytree(tiny_data, data, ignore=shutil.ignore_patterns("test.*"))
    references = finished / "references"
    references.write_text("another reference\n" * len(read_table(finished).sentences.source))
    record = json.loads((finished / "table.json").read_text())
    record |= {"subset": "valid", "references": [str(references)], "measured_on": str(data)}
    (finished / "table.json").write_text(json.dumps(record))
    run("lwc-fairseq", "report", finished)
    page = (finished / "report.html").read_text()
    assert "attention of ours" in page and "<dd dir=auto>another reference</dd>" in page


def test_references_and_alignments_that_have_changed(finished):
    """The scores of the table are of the earlier ones."""
    changed = finished / "changed"
    changed.write_text("0-0\n" * len(read_table(finished).sentences.source))
    record = json.loads((finished / "table.json").read_text())
    for more, flags in (({"references": [str(changed)]}, ()), ({}, ("--gold", changed))):
        contents = {"gold": "another", str(changed): "another"}
        (finished / "table.json").write_text(json.dumps({**record, **more, "contents": contents}))
        said = refused("lwc-fairseq", "report", finished, *flags)
        assert said.startswith(f"lwc-fairseq: error: {changed}: other contents than when the table was made")


def test_a_row_of_an_earlier_version_that_is_called_reference(finished):
    table = (finished / "table.json").read_text()
    (finished / "table.json").write_text(table.replace('"label": "base"', '"label": "reference"'))
    with pytest.raises(ValueError, match="a system is called reference, as the reference itself is called on pages"):
        write_report(finished, finished / "report.html")


@pytest.fixture(scope="module")
def translated(tmp_path_factory, tiny_data, tiny_checkpoint):
    """The report of two rows, one of which has a model, that translated the 20 sentences of the test set."""
    folder = make_table(tmp_path_factory.mktemp("translated"))
    made = run("fairseq-generate", tiny_data, *TASK, "--path", tiny_checkpoint).stdout
    (folder / "ours" / "seed1" / "generated.txt").write_text(made)
    (folder / "base" / "seed1" / "generated.txt").write_text(re.sub(r"(?m)^(H-\d+\t.*\t).*", r"\1KA", made))
    shutil.copy(tiny_checkpoint, folder / "ours" / "seed1" / "checkpoint_best.pt")
    run("lwc-fairseq", "report", folder, "--data", tiny_data)
    return folder / "report.html"


def test_explore_the_attention_of_an_example(translated, tiny_data):
    """A link beside a sentence leads to its attention, with the sub-words that the data have."""
    task = ConcatTranslationTask.setup_task(ConcatTranslationConfig(data=str(tiny_data), dataset_impl=None))
    task.load_dataset("test")
    with opened(translated.as_uri()) as view:
        source = view.locator("#source bdi")
        for line in (6, 11):  # of the samples 1, 6, 11 and 16
            view.locator(f'h3:has-text("Line {line}") a').first.click()
            tokens = task.source_dictionary.string(task.dataset("test")[line - 1]["source"]).split()
            assert source.all_inner_texts() == [*tokens, "</s>"]
            assert view.get_by_label("Sentence").locator("option:checked").inner_text() == f"{line}: {' '.join(tokens)}"
            assert view.locator("#target button").first.is_visible()
        view.locator("article a").first.click()
        line = view.locator("article:has(a) h3").first.inner_text().split()[1]
        assert view.get_by_label("Sentence").locator("option:checked").inner_text().startswith(f"{line}: ")
        assert view.get_by_label("Model").is_hidden()  # there is one
        view.get_by_label("Sentence").select_option(index=0)
        view.locator("#target button").last.click()
        assert view.locator("#summary").inner_text().startswith("Step ")


def test_compare_two_rows(translated):
    with opened(translated.as_uri()) as view:
        assert view.get_by_label("First").locator("option").all_inner_texts() == ["ours", "base"]
        assert view.locator("article").count() > 0 and view.locator("#few").count() == 0


def test_scores_by_frequency(translated, tiny_text):
    text = html.unescape(translated.read_text()).partition("<h2>By frequency in the training set</h2>")[2]
    table, _, rest = text.partition("</table>")
    header, *rows = re.findall("<tr>(.*?)</tr>", table)
    assert re.findall("<th>(.*?)</th>", header)[2:] == ["F1, ours", "F1, base"] and "F1: twice" in rest
    times = Counter((tiny_text / "train.en").read_text().split())
    expected = Counter(
        "10–99" if times[word] < 100 else "100–999" for word in (tiny_text / "test.en").read_text().split()
    )
    assert {name: int(count) for name, count in (re.findall("<td>(.*?)</td>", row)[:2] for row in rows)} == expected


def test_scores_by_frequency_without_training_data(finished, tiny_data, tiny_checkpoint, tmp_path):
    write_report(finished, finished / "report.html")
    assert (
        "no scores by frequency in the training set: no checkpoint is left." in (finished / "report.html").read_text()
    )
    shutil.copytree(tiny_data, tmp_path / "few", ignore=shutil.ignore_patterns("train.*"))
    shutil.copy(tiny_checkpoint, finished / "ours" / "seed1" / "checkpoint_best.pt")
    run("lwc-fairseq", "report", finished, "--data", tmp_path / "few")
    assert f"training set: {tmp_path / 'few'} has no training set (--data" in (finished / "report.html").read_text()


def test_a_model_whose_attention_cannot_be_read(finished, tiny_data, tiny_checkpoint):
    """fairseq's LSTM: the report says so, and has the alignments and attention of the other models."""
    sizes = [f"--{side}-{size}=8" for side in ("encoder", "decoder") for size in ("embed-dim", "hidden-size")]
    lstm = ("--arch", "lstm", *sizes, "--decoder-out-embed-dim", "8", "--max-update", "1")
    run("fairseq-train", tiny_data, *lstm, *TINY_TRAINING, "--save-dir", finished / "base" / "seed1")
    shutil.copy(tiny_checkpoint, finished / "ours" / "seed1" / "checkpoint_best.pt")
    (finished / "gold").write_text("0-0\n" * 20)
    run("lwc-fairseq", "report", finished, "--data", tiny_data, "--gold", finished / "gold")
    page = (finished / "report.html").read_text()
    assert "attention of ours" in page and "The attention of this model (LSTMModel) cannot be read." in page
    assert "<td>ours</td>" in page.partition("Word alignments")[2].partition("</table>")[0]


def test_each_sentence_is_read_in_its_own_direction(finished):
    run("lwc-fairseq", "report", finished)
    page = (finished / "report.html").read_text()
    assert "<dt>reference</dt><dd dir=auto>" in page and "<dd>" not in page


@pytest.mark.parametrize("width", [390, 1000])
def test_a_browser_shows_the_page(finished, tmp_path, width):
    """A phone and a desktop: all pictures, nothing on the console, nothing asked of a network."""
    write_report(finished, finished / "report.html")
    assert look_at(finished / "report.html", tmp_path, width) == Seen([True, True], True, [], [])


def test_the_browser_would_notice(tmp_path):
    page = '<html><head></head><body style="width:3000px"><img src="http://127.0.0.1:9/a.png">'
    (tmp_path / "page.html").write_text(page + "<script>console.error('oh')</script></body></html>")
    seen = look_at(tmp_path / "page.html", tmp_path)
    assert seen.images == [False] and not seen.fits
    assert any("oh" in line for line in seen.console) and seen.requests == ["http://127.0.0.1:9/a.png"]
