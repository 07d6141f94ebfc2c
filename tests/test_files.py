import pytest

from lwc_fairseq.files import read_lines


def test_lines_are_what_fairseq_counts(tmp_path):
    (tmp_path / "ref").write_bytes("a\u2028b\nc\u0085d\x0be\n".encode())
    assert read_lines(tmp_path / "ref") == ["a\u2028b", "c\u0085d\x0be"]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "empty").write_text("")
    (tmp_path / "latin").write_bytes(b"one\ntwo\xe4\n")
    for name, message in (("empty", "the file is empty"), ("latin", "line 2: not UTF-8"), ("none", "No such file")):
        with pytest.raises(ValueError, match=f"{name}.*{message}"):
            read_lines(tmp_path / name)
