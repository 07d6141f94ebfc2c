"""Pages of HTML: their tables in a browser."""

import pytest

from browser import opened
from lwc_fairseq.pages import html_table, page

HEADER = ["", "BLEU", "parameters", "p"]
ROWS = [
    ["<b>", "9.50 ± 0.20", "19.07M", ""],
    ["LWC, 10 layers", "70.25", "1,850.00M", "0.004 (against RNNSearch)"],
    ["LWC, 9 layers", "not finished", "2.28M", "0.12"],
    ["theirs", "–", "", "1.20e-05"],
    ["worse", "-1.00", "2.28M", "0.5"],
]
SORTED = {
    "name": ["<b>", "LWC, 9 layers", "LWC, 10 layers", "theirs", "worse"],
    "BLEU": ["worse", "<b>", "LWC, 10 layers", "LWC, 9 layers", "theirs"],
    "parameters": ["LWC, 9 layers", "worse", "<b>", "LWC, 10 layers", "theirs"],
    "p": ["theirs", "LWC, 10 layers", "LWC, 9 layers", "worse", "<b>"],
}
"""By each column, ascending. Cells without a value are last, also descending."""
MISSING = {"BLEU": 1, "parameters": 1, "p": 1}


@pytest.fixture
def address(tmp_path) -> str:
    (tmp_path / "a.html").write_text(page("Tables", [html_table(HEADER, ROWS)] * 2), "utf-8")
    return (tmp_path / "a.html").as_uri()


def test_sort_by_each_column(address):
    with opened(address) as view:
        table, other = view.locator("table").all()
        names = table.locator("td:first-child")
        for column, ascending in SORTED.items():
            head = table.get_by_role("columnheader", name=column, exact=True)
            head.get_by_role("button").click()
            assert names.all_inner_texts() == ascending
            assert table.locator("[aria-sort]").count() == 1 and head.get_attribute("aria-sort") == "ascending"
            head.get_by_role("button").focus()
            view.keyboard.press("Enter")
            values = len(ascending) - MISSING.get(column, 0)
            shown = names.all_inner_texts()
            if column != "parameters":  # where two are equal
                assert shown == ascending[:values][::-1] + ascending[values:]
            assert shown[values:] == ascending[values:] and head.get_attribute("aria-sort") == "descending"
            view.keyboard.press("Space")
            assert names.all_inner_texts() == [row[0] for row in ROWS] and not table.locator("[aria-sort]").count()
        table.get_by_role("button", name="BLEU").click()
        assert other.locator("td:first-child").all_inner_texts() == [row[0] for row in ROWS]


def test_a_page_without_tables_has_no_script():
    assert "<script" not in page("Nothing", ["<p>no table</p>"])
