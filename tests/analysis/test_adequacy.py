"""Repetition, omission and errors at both ends: values computed by hand, and what `compare` prints of them."""

import json
import sys
from math import exp, sqrt

import pytest

from browser import opened
from conftest import refusal
from lwc_fairseq import cli
from lwc_fairseq.analysis import adequacy
from lwc_fairseq.analysis.adequacy import (
    at_the_ends,
    omission,
    otem,
    repetition,
    repetitions,
    share_repeated,
    untranslated,
    words_to_translate,
    wrong_words,
)
from lwc_fairseq.analysis.comparison import LINES, Sentences, compare, markdown
from lwc_fairseq.analysis.comparison_page import write_comparison
from lwc_fairseq_compat import UserError

LEXICON = {"haus": {"house", "home"}, "katze": {"cat"}, "rote": {"red"}}


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        ([], 3),  # a b three times, b a twice
        (["a b"], 3),  # once is no repetition
        (["a b a b"], 2),  # a b twice, b a once
        (["a b c a b", "b a c b a"], 1),  # a b twice in the first, b a twice in the second
        (["a b a b a b a"], 0),
        ([""], 3),
    ],
)
def test_repetitions_beyond_those_of_the_references(references, expected):
    assert repetitions("a b a b a b", references, 2) == expected


def test_sentences_without_2_grams_have_no_repetitions():
    assert share_repeated(["a b a b a b", "", "word"], [[], [], []], 2) == pytest.approx(100 * 3 / 5)
    assert share_repeated(["", "word"], [["a"], ["a"]], 2) == 0 and otem([""], [["a b"]]) == 0


def test_otem_multiplies_repeated_words_and_2_grams():
    """a and b are repeated, and a b. The translation has 5 words; of several references, the closest one counts."""
    terms = sqrt(100 * 2 / 5 * 100 * 1 / 4)
    assert otem(["a b a b c"], [["a b c"]]) == pytest.approx(exp(1 - 3 / 5) * terms)
    assert otem(["a b a b c"], [["a b c d e f"]]) == pytest.approx(terms)
    assert otem(["a b a b c"], [["a b c d e f", "a b c d", "a"]]) == pytest.approx(exp(1 - 4 / 5) * terms)
    assert otem(["a b c"], [["a b c"]]) == 0


def test_repetition_of_systems_and_of_the_reference():
    systems = {"one": ["a b a b", "c d", "e f e f"], "two": ["a b", "c d c d", "e f"]}
    found = repetition(systems, [["a b a b", "c", "e"], ["a", "c d", "e"]])
    otem_2 = exp(1 - 7 / 10) * sqrt(100 * 2 / 10 * 100 * 1 / 7)  # e, f and e f
    assert found["one"] == {"repeated": 28.57, "beyond references": 14.29, "OTEM-2": round(otem_2, 2)}  # 2 and 1 of 7
    assert found["two"]["fewer"] == 1 and found["two"]["more"] == 1  # in the last sentence and in the second
    assert found["reference"] == {"repeated": 33.33}


@pytest.mark.parametrize(
    ("line", "references", "first", "last"),
    [
        ("a b c d e f", ["a b c d e f"], (0, 4), (0, 4)),
        ("b a x d e f", ["a b c d e f"], (1, 4), (1, 4)),  # x; the order does not count
        ("c d e f a b", ["a b c d e f"], (2, 4), (2, 4)),  # all words are right, but not at this end
        ("a a a a", ["a b a c d"], (2, 4), (3, 4)),
        ("a b", ["a b c d e f"], (2, 4), (4, 4)),  # missing words are wrong, too
        ("a b c d e f", ["e f"], (4, 4), (2, 4)),
        ("", ["a"], (1, 1), (1, 1)),
        ("", [""], (0, 0), (0, 0)),
        ("a b c", ["a b x y", "a b c d e"], (1, 4), (2, 4)),  # for each end, the nearest reference
    ],
)
def test_wrong_words_at_both_ends(line, references, first, last):
    assert wrong_words(line, references, adequacy.ENDS["first"]) == first
    assert wrong_words(line, references, adequacy.ENDS["last"]) == last


def test_systems_are_compared_at_both_ends():
    systems = {"one": ["a b c d e f", "x y", "a"], "two": ["x b c d e f", "a y", "b"]}
    found = at_the_ends(systems, [["a b c d e f", "a b", "a"]])
    # Of 4 + 2 + 1 words at the beginning, x and y are wrong; x, y and b. At the end: x and y; y and b.
    assert found["first"] == {"one": {"wrong": 28.57}, "two": {"wrong": 42.86, "fewer": 1, "more": 2}}
    assert found["last"] == {"one": {"wrong": 28.57}, "two": {"wrong": 28.57, "fewer": 1, "more": 1}}
    page = markdown(compare(Sentences(systems, [["a b c d e f", "a b", "a"]])))
    assert "## At the ends of sentences" in page and "| two | 42.86 | 1 / 2 | 28.57 | 1 / 1 |" in page
    page = markdown(compare(Sentences({"none": [""]}, [[""]])))
    assert "| none | 0.00 |  | 0.00 |  |" in page


def test_words_that_a_reference_translates_are_expected():
    source = ["das rote haus", "katze katze hund"]
    references = [("the home", "a red home"), ("a cat", "a dog")]
    expected = words_to_translate(source, references, LEXICON)
    assert expected == [["rote", "haus"], ["katze", "katze"]]
    assert words_to_translate(source, [("the home",), ("a dog",)], LEXICON) == [["haus"], []]
    assert untranslated(["a house", "a dog"], expected, LEXICON) == [["rote"], ["katze", "katze"]]
    assert untranslated(["a red house", "cat"], expected, LEXICON) == [[], []]
    assert untranslated(["", ""], expected, LEXICON) == expected


@pytest.fixture
def known_lexicon(monkeypatch):
    monkeypatch.setattr(adequacy, "estimate_lexicon", dict)


def test_the_page_has_both_measures(known_lexicon):
    systems = {"one": ["a cat here", "a red a red"], "two": ["a home", "red"]}
    sentences = Sentences(systems, [["the home cat", "a red"]], ["das haus katze", "rote"])
    comparison = compare(sentences, bitext=LEXICON)
    assert comparison.omission == {
        "content words": 3,
        "words to translate": 3,
        "systems": {
            "one": {"untranslated": 33.33, "words": [omitted("haus", [1])]},
            "two": {"untranslated": 33.33, "fewer": 0, "more": 0, "words": [omitted("katze", [1])]},
        },
    }
    page = markdown(comparison)
    assert "## Repetition and omission" in page and "| two | 33.33 | 0 / 0 |" in page
    assert "| one | 20.00 | 20.00 |" in page and "| two | 0.00 | 0.00 | 0.00 | 1 / 0 |" in page
    assert "| reference | 0.00 |  |  |  |" in page
    page = markdown(compare(Sentences({"one": systems["one"]}, sentences.references)))
    assert "## Repetition\n" in page and "untranslated" not in page


def omitted(word: str, lines: list[int], times: int = 1) -> dict:
    return {"word": word, "translations": sorted(LEXICON[word]), "times": times, "lines": lines}


def test_untranslated_words_are_named_with_their_lines(known_lexicon, tmp_path):
    """Those that are untranslated most often come first; the page has each with its sentence, also of one system."""
    source = ["das rote haus", "katze haus", "katze <katze>", "haus", "katze katze"]
    reference = ["the red home", "a cat and a house", "a cat", "house", "cat , cat"]
    sentences = Sentences({"one": ["the house", "<b>red</b>", "a cat", "home", "a dog"]}, [reference], source)
    comparison = compare(sentences, bitext=LEXICON)
    words = [omitted("katze", [2, 5, 5], 4), omitted("rote", [1]), omitted("haus", [2], 3)]
    assert comparison.omission["systems"]["one"] == {"untranslated": 62.5, "words": words}
    text = markdown(comparison)
    assert "| katze | cat | 3 | 4 | 2, 5 |" in text and "| haus | home, house | 1 | 3 | 2 |" in text
    assert "Lines are numbered from 1: line 951 is H-950" in text
    write_comparison(comparison, sentences, tmp_path)
    with opened((tmp_path / "compare.html").as_uri(), width=390) as page:
        details = page.locator("details")
        assert not details.locator("td").first.is_visible()
        page.get_by_text("one: 4 places").click()
        rows = [row.locator("td").all_inner_texts() for row in details.locator("tbody tr").all()]
        assert rows[0] == ["katze", "cat", "2", "<b>red</b>", "katze haus"] and len(rows) == 4
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_text_names_the_most_frequent_untranslated_words(known_lexicon):
    words = [f"v{i}" for i in range(12)]
    lexicon = {word: {word} for word in words}
    sentences = Sentences({"one": ["x"] * 13}, [[*words, "v11"]], [*words, "v11"])
    lines = markdown(compare(sentences, bitext=lexicon)).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| v")] == ["v11", *words[:9]]


def test_a_name_in_the_text_is_no_tag(known_lexicon):
    lines = markdown(compare(Sentences({"<s>": ["x"]}, [["a"]], ["v"]), bitext={"v": {"a"}})).splitlines()
    assert f"The words that \\<s> leaves untranslated most often. {LINES}" in lines


def test_text_of_other_languages_is_refused(known_lexicon):
    with pytest.raises(UserError, match="no reference has a translation of a content word"):
        omission({"one": ["a"]}, [["a"]], ["haus"], LEXICON)


def test_a_lexicon_from_parallel_text(tmp_path, capsys):
    """Frequent words have no translations, and neither has what holds no letter."""
    pytest.importorskip("nltk")
    source = [f"f{i} f{i} f{i}" for i in range(50)] + ["haus f0", "haus f1", "42 f2", "&quot; f3"]
    target = [f"g{i} g{i} g{i}" for i in range(50)] + ["house g0", "house g1", "42 g2", "&quot; g3"]
    files = {"src": ["haus 42 &quot; f0"], "ref": ["house 42 &quot; g0"], "a": ["42 &quot; g0"]}
    for name, lines in {**files, "train.src": source, "train.tgt": target}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    src, ref, a, *training = (str(tmp_path / name) for name in ("src", "ref", "a", "train.src", "train.tgt"))
    args = ("compare", f"a={a}", "--ref", ref, "--src", src, "--out", str(tmp_path), "--lexicon", *training)
    parsed = cli.parser().parse_args(args)
    assert parsed.call(parsed) == 0
    found = json.loads((tmp_path / "compare.json").read_text())["omission"]
    words = [{"word": "haus", "translations": ["house"], "times": 1, "lines": [1]}]
    system = {"untranslated": 100.0, "words": words}
    assert found == {"content words": 1, "words to translate": 1, "systems": {"a": system}}
    assert "lexicon, iteration 5 of 5:   0%|          | 0/54" in capsys.readouterr().err


def test_a_lexicon_that_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.translate", None)  # as if it were not installed
    for name, text in (("text", "one\ntwo\n"), ("short", "one\n")):
        (tmp_path / name).write_text(text)
    text, short = tmp_path / "text", tmp_path / "short"
    command = ("compare", f"a={text}", "--ref", text)
    assert "--lexicon has no effect without --src: add --src" in refusal(*command, "--lexicon", text, text)
    assert "install NLTK with: pip install '.[lexicon]'" in refusal(*command, "--src", text, "--lexicon", text, text)
    assert f"{text} has 2 lines, {short} has 1: give" in refusal(*command, "--src", text, "--lexicon", text, short)
