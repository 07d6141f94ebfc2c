"""The page of `lwc-fairseq attention`: its data, and what a browser shows when somebody points, types and clicks."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig

from browser import data_of_view, opened
from conftest import TASK, make_abd, make_abd_lwc, make_deepatt, make_dictionary, make_lwc, make_transformer, run
from lwc_fairseq.analysis.attention import (
    REVERSE,
    SO_FAR,
    Attention,
    Hypothesis,
    attend,
    panels,
    symbols,
    translations,
)
from lwc_fairseq.analysis.attention import SOURCE as SOURCE_SIDE
from lwc_fairseq.analysis.attention_page import LARGEST, make_page, page_data
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig, ConcatTranslationTask

SOURCE = "w1 w2 w3 w4"
MODELS = {  # with the sides beside the source
    "lwc": (lambda: make_lwc(dtype=torch.float32), [SO_FAR]),
    "deepatt": (lambda: make_deepatt(types=(17, 17), dtype=torch.float32), []),
    "abd": (lambda: make_abd(types=(17, 17), dtype=torch.float32), [REVERSE]),
    "abd_lwc": (lambda: make_abd_lwc(dtype=torch.float32), [REVERSE, SO_FAR]),
    "transformer": (make_transformer, [SO_FAR]),
}
HEBREW = "סבא שלי בן שבעים".split()


def make_task(**settings):
    return ConcatTranslationTask(ConcatTranslationConfig(**settings), make_dictionary(17), make_dictionary(17))


def data_in(path) -> dict:
    """The data of the page, with those of its only translation."""
    data = data_of_view(path.read_text("utf-8"), "attention_view")
    return data | data["views"][0][0]


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_every_family_layer_and_head(name):
    make, others = MODELS[name]
    model, task = make(), make_task()
    found, beams = translations(model, task, SOURCE, None)
    hypotheses = found[:2]  # all can be too large for their heads
    attentions = [attend(model, task, SOURCE, hypothesis) for hypothesis in hypotheses]
    data = page_data(task, hypotheses, attentions, beams)
    assert data["source"] == [*SOURCE.split(), "</s>"] and [side["name"] for side in data["others"]] == others
    assert len(found) == 5
    for shown, hypothesis, attention in zip(data["hypotheses"], hypotheses, attentions, strict=True):
        assert shown["rows"] == hypothesis.rows and shown["score"] == hypothesis.score
        for side, tokens in zip(others, shown["others"], strict=True):
            assert side != SO_FAR or tokens == ["(start)", *hypothesis.rows[:-1]]
        text = " ".join(hypothesis.rows[:-1])
        if len(hypothesis.rows) > 1 and hypothesis.rows[-1] == "</s>":
            ((forced,), _) = translations(model, task, SOURCE, text)
            assert forced.of_tokens == pytest.approx(hypothesis.of_tokens, abs=1e-4) and forced.score is None
        for head in range(data["heads"]):
            for number, panel in enumerate(panels(attention, None, head)):
                weights = np.array(shown["weights"][number][head]) / 1000
                assert weights.shape == panel.weights.shape == (len(shown["rows"]), len(panel.columns))
                assert np.abs(weights - panel.weights.numpy()).max() <= 0.00051


@pytest.mark.parametrize("reverse_target", [False, True])
def test_the_recorded_search_is_the_search(reverse_target):
    """Its hypotheses are the usual ones, each is in the beam at every step, and log P is that of the model."""
    model, task = make_lwc(dtype=torch.float32), make_task(reverse_target=reverse_target)
    hypotheses, beams = translations(model, task, SOURCE, None)
    source = task.source_dictionary.encode_line(SOURCE, add_if_not_exist=False).long()[None]
    sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([source.size(1)])}}
    usual = task.inference_step(task.build_generator([model], GenerationConfig(beam=5)), [model], sample)[0]
    texts = [" ".join(symbols(task.target_dictionary, found["tokens"][:-1])) for found in usual]
    data = page_data(task, hypotheses, [attend(model, task, SOURCE, found) for found in hypotheses], beams)
    assert [shown["text"] for shown in data["hypotheses"]] == texts
    assert [shown["score"] for shown in data["hypotheses"]] == pytest.approx([found["score"].item() for found in usual])
    for i, hypothesis in enumerate(hypotheses):
        inputs = torch.cat([hypothesis.tokens[-1:], hypothesis.tokens[:-1]])[None]
        scores = model(source, torch.tensor([source.size(1)]), inputs)[0].log_softmax(-1)[0]
        scores = scores.gather(1, hypothesis.tokens[:, None])[:, 0]
        assert data["hypotheses"][i]["logProbabilities"] == pytest.approx(scores.tolist(), abs=1e-3)
        sums = scores.cumsum(0).tolist()
        for step, log_probability in enumerate(sums):
            is_last = step == len(sums) - 1
            beam = [entry for entry in data["beams"][step] if entry["finished"] == is_last]
            (entry,) = [entry for entry in beam if i in entry["leadsTo"]]
            assert entry["logProbability"] == pytest.approx(log_probability, abs=1e-3)
            assert (texts[i].endswith if reverse_target else texts[i].startswith)(entry["text"])
    for beam in data["beams"]:
        totals = [entry["logProbability"] for entry in beam]
        assert totals == sorted(totals, reverse=True) and len(beam) >= 1


def by_hand(source: list[str], rows: list[str], layers: int = 2, heads: int = 2, seed: int = 0) -> Attention:
    """Mixed attention with random weights. In layer 0, head 0, step j attends to source word j alone."""
    sides = {SOURCE_SIDE: [*source, "</s>"], SO_FAR: ["(start)", *rows[:-1]]}
    columns = [token for tokens in sides.values() for token in tokens]
    weights = torch.rand(layers, heads, len(rows), len(columns), generator=torch.Generator().manual_seed(seed))
    weights[..., len(source) + 1 :].tril_()
    weights /= weights.sum(-1, keepdim=True)
    weights[0, 0] = torch.eye(len(rows), len(columns))
    return Attention(rows, sides, list(weights))


def write(path, source: list[str], targets: list[list[str]], layer=None, head=None, largest=LARGEST, **sizes) -> None:
    """Write a page for hypotheses, of which each step has all in its beam."""
    none = torch.tensor([])
    hypotheses = [
        Hypothesis(none, [*words, "</s>"], -i / 8, -float(i), [-j / 4 for j in range(len(words) + 1)])
        for i, words in enumerate(targets)
    ]
    beams = []
    for length in range(1, max(map(len, targets)) + 1):
        unfinished = [found.rows[:length] for found in hypotheses if length < len(found.rows)]
        beams.append([Hypothesis(none, rows, None, -length - i / 8) for i, rows in enumerate(unfinished)])
    attentions = [by_hand(source, found.rows, seed=i, **sizes) for i, found in enumerate(hypotheses)]
    task = SimpleNamespace(cfg=ConcatTranslationConfig())
    path.write_text(make_page(page_data(task, hypotheses, attentions, beams, largest), layer, head), "utf-8")


def test_tokens_that_look_like_html(tmp_path):
    words = ["</script><script>alert(1)</script>", "<!--", "&amp;", "{{data}}", "\u2028", '"']
    write(tmp_path / "a.html", words, [words])
    data = data_in(tmp_path / "a.html")
    assert data["source"][:-1] == words == data["hypotheses"][0]["rows"][:-1]
    text = (tmp_path / "a.html").read_text("utf-8")
    assert text.count("</script>") == 2 and "<title>&lt;/script&gt;" in text


def test_a_page_for_70_words_14_layers_and_8_heads_is_small(tmp_path):
    words = [f"w{i}" for i in range(70)]
    write(tmp_path / "a.html", words, [words] * 5, layers=14, heads=8)
    data = data_in(tmp_path / "a.html")
    assert [len(shown["weights"][0]) for shown in data["hypotheses"]] == [8, 1, 1, 1, 1]
    assert (tmp_path / "a.html").stat().st_size < 5e6


@pytest.mark.parametrize(
    ("largest", "heads"),
    [(960, [2, 2, 2]), (959, [2, 2, 1]), (640, [2, 1, 1]), (639, [1, 1, 1]), (480, [1, 1, 1]), (479, [1, 0, 0])],
)
def test_a_page_keeps_what_fits(tmp_path, largest, heads):
    """Of three hypotheses of 2 layers, 8 rows and 10 columns: the mean over the 2 heads has 160 weights."""
    words = [f"w{i}" for i in range(7)]
    write(tmp_path / "a.html", ["ein"], [words] * 3, largest=largest)
    found = [shown["weights"] for shown in data_in(tmp_path / "a.html")["hypotheses"]]
    assert [len(layers[0]) if layers else 0 for layers in found] == heads


def test_a_page_says_what_it_lacks(tmp_path):
    words = [f"w{i}" for i in range(7)]
    write(tmp_path / "a.html", ["ein"], [words] * 3, largest=479)
    with opened((tmp_path / "a.html").as_uri()) as page:
        hypotheses = page.locator("#hypotheses input")
        assert [hypothesis.is_enabled() for hypothesis in hypotheses.all()] == [True, False, False]
        assert page.get_by_label("Head").is_disabled() and not page.get_by_label("Layer").is_disabled()
        note = page.locator("#note").inner_text()
        assert "the mean over the heads" in note and "hypotheses that cannot be chosen" in note


def test_command(tiny_checkpoint, tiny_data, tmp_path):
    command = ("lwc-fairseq", "attention", tiny_checkpoint, "--data", tiny_data, "--source", "ba de fi")
    files = ("--out", tmp_path / "a.html", "--weights", tmp_path / "a.npz")
    run(*command, "--target", "BA DE", *files, "--layer", "1", "--head", "0")
    data, arrays = data_in(tmp_path / "a.html"), np.load(tmp_path / "a.npz")
    assert data["layer"] == 1 and data["head"] == 0 and not data["beams"]
    assert data["source"] + data["hypotheses"][0]["others"][0] == list(arrays["columns"])
    assert np.abs(np.array(data["hypotheses"][0]["weights"][1][0]) / 1000 - arrays["weights"][0]).max() <= 0.00051


def test_a_given_translation_has_the_log_p_of_fairseq_generate(tiny_checkpoint, tiny_data, tmp_path):
    """fairseq-generate prints base 2, to four decimals; the page has natural logarithms."""
    scored = run("fairseq-generate", tiny_data, *TASK, "--path", tiny_checkpoint, "--score-reference").stdout
    lines = dict(line.split("\t", 1) for line in scored.splitlines() if line[:2] in ("S-", "T-", "H-", "P-"))
    number = min((key[2:] for key in lines), key=int)
    files = ("--source", lines[f"S-{number}"], "--target", lines[f"T-{number}"], "--out", tmp_path / "a.html")
    run("lwc-fairseq", "attention", tiny_checkpoint, "--data", tiny_data, *files)
    found = data_in(tmp_path / "a.html")["hypotheses"][0]["logProbabilities"]
    theirs = [float(value) * math.log(2) for value in lines[f"P-{number}"].split()]
    assert len(found) > 2 and found == pytest.approx(theirs, abs=1e-3)
    assert sum(found) / len(found) == pytest.approx(float(lines[f"H-{number}"].split("\t")[0]) * math.log(2), abs=1e-3)


def test_point_type_and_click(tmp_path):
    write(tmp_path / "a.html", ["der", "alte", "Mann"], [["the", "old", "man"], ["an", "old", "man"]], 0, 0)
    with opened((tmp_path / "a.html").as_uri()) as page:
        largest, summary = page.locator("#source .largest bdi"), page.locator("#summary")
        words = page.locator("#target button")
        assert largest.all_inner_texts() == ["der"]
        words.nth(1).hover()
        assert largest.all_inner_texts() == ["alte"]
        assert "“\u2068old\u2069”, log P -0.25. Source: “\u2068alte\u2069” 1.00." in summary.inner_text()
        style = "words => words.map(word => getComputedStyle(word).backgroundColor)"
        shades = page.locator("#source > *").evaluate_all(style)
        assert shades[0] == shades[2] == "rgba(255, 166, 0, 0)" and shades[1] == "rgb(255, 166, 0)"
        assert page.locator("#others .words > :not(.later) bdi").all_inner_texts() == ["(start)", "the"]

        words.nth(2).click()
        words.nth(0).hover()
        assert largest.all_inner_texts() == ["Mann"]  # a click holds it
        page.keyboard.press("ArrowLeft")
        assert largest.all_inner_texts() == ["alte"]
        assert page.locator(":focus bdi").inner_text() == "old"
        page.get_by_text("Next step").click()
        assert largest.all_inner_texts() == ["Mann"]

        assert not page.locator("small").first.is_visible()
        page.get_by_label("Weights and log P as numbers").check()
        assert page.locator("small").first.is_visible()
        assert page.locator("#source small").all_inner_texts() == ["0.00", "0.00", "1.00", "0.00"]
        assert page.locator("#target small").all_inner_texts() == ["0.00", "-0.25", "-0.50", "-0.75"]
        assert words.nth(1).get_attribute("title") == "log P -0.250"
        total = page.locator("#total").inner_text()
        assert total.startswith("log P of the translation: -1.50, -0.375 per token. These are natural logarithms.")
        page.get_by_label("Layer").select_option("1")
        page.get_by_label("Head").select_option("mean")
        data = data_in(tmp_path / "a.html")
        expected = np.array(data["hypotheses"][0]["weights"][1])[:, 2].mean(0) / 1000
        shown = page.locator(".words:not(#target) > *").evaluate_all("words => words.map(word => Number(word.title))")
        assert np.abs(np.array(shown) - expected).max() <= 0.00051

        assert page.locator("#beam tr.shown td").all_inner_texts() == ["-3.00", "the old man", "1"]
        page.get_by_label("an old man").check()
        assert page.locator("#target bdi").all_inner_texts() == ["an", "old", "man", "</s>"]
        assert page.locator("#beam tr.shown td").nth(1).inner_text() == "an old man"
        page.get_by_text("Next step").click()
        assert page.locator("#beam tr.shown td").nth(2).inner_text() == "ends as 2"


def test_from_a_word_of_the_source_to_the_translation(tmp_path):
    """A click or the keyboard chooses a word of a side; a second click or Escape returns to the step."""
    write(tmp_path / "a.html", ["der", "alte", "Mann"], [["the", "old", "man"], ["an", "old", "man"]], 0, 0)
    with opened((tmp_path / "a.html").as_uri()) as page:
        source, words = page.locator("#source button"), page.locator("#target button")
        largest, summary = page.locator("#target .largest bdi"), page.locator("#summary")
        words.nth(2).hover()
        source.nth(1).click()
        assert largest.all_inner_texts() == ["old"] and page.locator("#source .largest").count() == 0
        text = "Source, 2 of 4, “\u2068alte\u2069”. Attended to by: “\u2068old\u2069” 1.00. Sum over 4 steps: 1.00."
        assert summary.inner_text() == text
        words.nth(0).hover()
        assert summary.inner_text() == text  # a click holds it
        page.get_by_label("Layer").select_option("1")
        page.get_by_label("Head").select_option("mean")
        column = np.array(data_in(tmp_path / "a.html")["hypotheses"][0]["weights"][1]).mean(0)[:, 1] / 1000
        shown = words.evaluate_all("words => words.map(word => Number(word.title))")
        assert np.abs(np.array(shown) - column).max() <= 0.00051
        assert f"Sum over 4 steps: {column.sum():.2f}." in summary.inner_text()
        page.get_by_label("an old man").check()
        assert summary.inner_text().startswith("Source, 2 of 4") and largest.count() == 1
        page.get_by_role("radio", name="the old man").check()
        source.nth(1).click()
        assert "Step 3 of 4" in summary.inner_text()

        page.locator("#others button").nth(2).click()  # “old”, which only the steps after it see
        assert "Translation so far, 3 of 4, “\u2068old\u2069”" in summary.inner_text()
        shades = "words => words.map(word => Number(word.style.getPropertyValue('--shade')) > 0)"
        assert words.evaluate_all(shades) == [False, False, True, True]
        page.keyboard.press("Escape")
        assert "Step 3 of 4" in summary.inner_text() and page.locator("#target .largest").count() == 0

        page.get_by_text("Next step").focus()
        page.keyboard.press("Tab")
        assert "Source, 1 of 4" in summary.inner_text()
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        assert "Source, 3 of 4, “\u2068Mann\u2069”" in summary.inner_text()
        assert page.locator(":focus bdi").inner_text() == "Mann"
        page.keyboard.press("Enter")
        words.nth(0).hover()
        assert "Source, 3 of 4" in summary.inner_text()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.locator(":focus bdi").inner_text() == "man" and "Step 3 of 4" in summary.inner_text()


def test_right_to_left_and_70_words_on_a_narrow_screen(tmp_path):
    words = [f"quitelongword{i}" for i in range(70)]
    write(tmp_path / "a.html", HEBREW, [words], 0, 0)
    with opened((tmp_path / "a.html").as_uri(), width=400) as page:
        places = [word.bounding_box()["x"] for word in page.locator("#source > *").all()]
        assert places[0] > places[1] > places[2]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("#target button").nth(1).hover()
        assert page.locator("#source .largest bdi").all_inner_texts() == [HEBREW[1]]
        page.locator("#source button").nth(1).click()
        page.keyboard.press("ArrowLeft")
        assert page.locator(":focus bdi").inner_text() == HEBREW[2]
        assert page.locator("#target .largest bdi").all_inner_texts() == [words[2]]
