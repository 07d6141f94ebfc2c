"""The progress of a table, where there is no terminal."""

from types import SimpleNamespace

from lwc_fairseq.experiments.progress import Bars


def test_a_log_gets_whole_lines(capsys):
    with Bars(2, kept=0) as bars:
        bars.plain["mininterval"] = 0
        with bars.job(0, SimpleNamespace(name="ours, seed 1")) as bar:
            bar.advance_to(0.25)
            bar.advance_to(0.5)
    written = capsys.readouterr().err
    assert "\r" not in written and "\x1b" not in written and "\n\n" not in written
    lines = written.splitlines()
    assert lines[0].startswith("table, 2 runs:   0% |") and lines[-1].startswith("table, 2 runs:  50% |")
    assert any(line.startswith("ours, seed 1:  25% |") for line in lines)
