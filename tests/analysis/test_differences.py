"""The view of the sentences on which two systems differ, in a browser."""

import pytest

from browser import data_of_view, look_at, opened
from conftest import run
from lwc_fairseq.analysis.comparison import Sentences, largest_differences
from lwc_fairseq.analysis.differences import MOST, differences_view
from lwc_fairseq.pages import page

REFERENCES = ["an old man sits on a bench", "<b>two</b> dogs", "סבא שלי בן שבעים", "the same"]
SYSTEMS = {
    "good": ["an old man sits on a bench", "two cats", "סבא שלי בן שבעים", "the same"],
    "bad": ["a man sits on old bench", "<b>two</b> dogs", "סבא שלי בן תשעים", "the same"],
    "worst": ["nothing", "nothing", "שלום", "the same"],
}
SOURCE = ["ein alter Mann sitzt auf einer Bank", "zwei Hunde", "mein Großvater ist siebzig", "dasselbe"]


def view_of(sentences: Sentences) -> str:
    return differences_view(sentences, largest_differences(sentences, MOST), 2, [1])


def write(path, systems=SYSTEMS, references=(REFERENCES,), source=SOURCE) -> str:
    path.write_text(page("Differences", [view_of(Sentences(systems, list(references), source))]), "utf-8")
    return path.as_uri()


def test_choose_filter_and_exchange(tmp_path):
    with opened(write(tmp_path / "a.html")) as view:
        lines, count = view.locator("article h3"), view.get_by_role("status")
        assert [text.split("\n")[0] for text in lines.all_inner_texts()] == ["Line 2", "Line 1", "Line 3"]
        assert count.inner_text() == "good is better on 2 sentences, bad on 1, of 4."
        first = view.locator("article", has_text="Line 1")
        assert first.locator("dt").all_inner_texts() == ["source", "reference", "good", "bad"]
        good, bad = (first.locator("dd").nth(i).locator("mark") for i in (2, 3))
        assert good.all_inner_texts() == ["an", "old", "a"] and bad.all_inner_texts() == ["a", "old"]
        assert bad.first.get_attribute("title") == "in the reference"
        wrong = view.locator("article", has_text="Line 2").locator("mark.wrong")
        assert wrong.all_inner_texts() == ["two", "cats"]
        assert view.locator("article dd", has_text="<b>two</b> dogs").count() == 2

        view.get_by_label("Show").select_option("bad is better")
        assert lines.all_inner_texts()[0].startswith("Line 2") and lines.count() == 1
        view.get_by_role("button", name="Exchange").click()
        assert [text.split("\n")[0] for text in lines.all_inner_texts()] == ["Line 1", "Line 3"]
        assert count.inner_text() == "bad is better on 1 sentences, good on 2, of 4."
        view.get_by_label("First").select_option("worst")
        view.get_by_label("Show").select_option("all that differ")
        assert lines.count() == 3 and view.locator("article dt", has_text="bad").count() == 0
        view.get_by_label("Second").select_option("worst")
        assert lines.count() == 0


def test_many_sentences_are_shown_in_portions(tmp_path):
    """The button gives the focus to the first new one, from which a reader without a mouse goes on."""
    references = [f"{'word ' * number}end" for number in range(50)]
    systems = {"a": references, "b": ["nothing"] * 50}
    with opened(write(tmp_path / "a.html", systems, [references], None)) as view:
        assert view.locator("article").count() == 20
        view.locator("#more").focus()
        view.keyboard.press("Enter")
        assert view.locator("article").count() == 40
        assert view.locator(":focus").inner_text() == view.locator("article h3").nth(20).inner_text()
        view.get_by_role("button", name="Show 10 more").click()
        assert view.locator("article").count() == 50 and not view.locator("#more").is_visible()


def test_right_to_left_and_a_narrow_screen(tmp_path):
    with opened(write(tmp_path / "a.html"), width=390) as view:
        assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        line = view.locator("article", has_text="Line 3")
        directions = line.locator("dd").evaluate_all("lines => lines.map(line => getComputedStyle(line).direction)")
        assert directions == ["ltr", "rtl", "rtl", "rtl"]
        assert line.locator("mark").all_inner_texts() == ["שבעים", "תשעים"]


def test_every_reference_counts(tmp_path):
    systems = {"a": ["the big house"], "b": ["the large house"]}
    with opened(write(tmp_path / "a.html", systems, [["the big house"], ["the large home"]], None)) as view:
        assert view.locator("article dt").all_inner_texts() == ["reference 1", "reference 2", "a", "b"]
        assert view.locator("mark.right").all_inner_texts()[1:] == ["big", "large"]  # the first one is explained


def test_a_repeated_word_is_right_as_often_as_in_the_reference(tmp_path):
    systems = {"a": ["Felix reads to Felix"], "b": ["the man reads to Felix"]}
    with opened(write(tmp_path / "a.html", systems, [["the old man reads to Felix"]], None)) as view:
        assert view.locator("article mark.wrong").all_inner_texts() == ["Felix"]
        assert view.locator("article mark.right").all_inner_texts() == ["the", "man"]


def test_without_scripts_there_are_a_few(tmp_path):
    write(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text("utf-8")
    few = text.partition('<div id="few">')[2].partition("</div>")[0]
    assert few.count("<h3>") == 2 and "bad (chrF2 " in few and '<a href="#attention-1">' in few
    assert '<section class="differences" id="differences" hidden>' in text


def test_a_page_holds_those_that_differ_most():
    references = ["a b c d e f"] * (MOST + 5)
    systems = {"a": references, "b": ["a b c d e f"] * 3 + ["a b c d"] * (MOST + 1) + ["x"]}
    text = view_of(Sentences(systems, [references]))
    lines = [sentence["line"] for sentence in data_of_view(text, "differences_view")["sentences"]]
    assert len(lines) == MOST and lines[:2] == [MOST + 5, 4]


@pytest.mark.parametrize("systems", [2, 1])
def test_the_page_of_compare(systems, tmp_path):
    for name, lines in {"ref": REFERENCES, "src": SOURCE, **SYSTEMS}.items():
        (tmp_path / name).write_text("\n".join([*lines, ""]), "utf-8")
    given = [f"{name}={tmp_path / name}" for name in list(SYSTEMS)[:systems]]
    files = (
        "--ref",
        tmp_path / "ref",
        "--src",
        tmp_path / "src",
        "--out",
        tmp_path / "out",
        "--train-text",
        tmp_path / "ref",
    )
    run("lwc-fairseq", "compare", *given, *files)
    found = look_at(tmp_path / "out" / "compare.html", tmp_path, 390)
    assert found.images == [True, True] and found.fits and not found.requests and not found.console
    text = (tmp_path / "out" / "compare.html").read_text("utf-8")
    headings = ["Repetition", "At the ends of sentences", "By source length", "By frequency in the training set"]
    headings.append("Where they differ most" if systems > 1 else "Where it is worst")
    assert [part.partition("</h2>")[0] for part in text.split("<h2>")[1:]] == headings
    assert "line 951 is H-950" in text
