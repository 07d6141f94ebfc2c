import os
import socket
import subprocess
from pathlib import Path

import pytest

from lwc_fairseq.files import read_lines, write_whole
from lwc_fairseq_compat.files import whole_file


def test_lines_are_what_fairseq_counts(tmp_path):
    (tmp_path / "ref").write_bytes("a\u2028b\nc\u0085d\x0be\n".encode())
    assert read_lines(tmp_path / "ref") == ["a\u2028b", "c\u0085d\x0be"]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "empty").write_text("")
    (tmp_path / "latin").write_bytes(b"one\ntwo\xe4\n")
    for name, message in (("empty", "the file is empty"), ("latin", "line 2: not UTF-8"), ("none", "No such file")):
        with pytest.raises(ValueError, match=f"{name}.*{message}"):
            read_lines(tmp_path / name)


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "table.md"
    with whole_file(path) as first, open(first, "w") as file:
        file.write("the first")
        child = os.fork()
        if child == 0:
            write_whole(path, "the other")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0 and path.read_text() == "the other"
    assert path.read_text() == "the first" and os.listdir(tmp_path) == ["table.md"]


@pytest.mark.parametrize("kind", [Path.touch, Path.mkdir])
def test_nothing_unfinished_is_left(tmp_path, kind):
    """Neither by an interruption, nor by a process that was killed. What another process writes now stays."""
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "made") as making:
        kind(Path(making))
        raise KeyboardInterrupt
    assert not os.listdir(tmp_path)
    ended = subprocess.Popen("true")
    ended.wait()
    left, used = (tmp_path / f"made.{socket.gethostname()}.{number}.1.making" for number in (ended.pid, os.getppid()))
    kind(left), kind(used)
    with whole_file(tmp_path / "made") as making:
        kind(Path(making))
    assert sorted(os.listdir(tmp_path)) == ["made", used.name]


def test_a_killed_process_may_have_had_the_number_of_this_one(tmp_path):
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "made") as making:
        pass  # nothing was written
    Path(making).mkdir()
    with whole_file(tmp_path / "made") as making:
        Path(making).mkdir()
    assert os.listdir(tmp_path) == ["made"]
