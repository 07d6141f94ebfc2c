from lwc_fairseq.analysis.page import cell


def test_numbers_are_written_as_people_write_them():
    assert [cell(value) for value in (None, 3, 1234, 0.5, 71.25, 94.0, "text")] == [
        *("", "3", "1,234", "0.5", "71.25", "94", "text")
    ]
