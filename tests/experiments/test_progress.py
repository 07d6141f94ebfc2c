"""How far a training is, from its log."""

import pytest

from lwc_fairseq.experiments.progress import Progress


def test_progress_is_read_from_the_log():
    seen = []

    class Bar:
        begin_at = staticmethod(lambda share: seen.append(("begin", share)))
        advance_to = staticmethod(lambda share: seen.append(("advance", share)))

    progress = Progress(["fairseq-train", "--max-update", "5", "--max-update=200", "--max-epoch", "10"], Bar())
    progress.see('INFO | train_inner | {"epoch": 1, "update": 0.5, "num_updates": "50"}')
    progress.see("something else")
    progress.see('INFO | train_inner | {"epoch": 9, "update": 9.0, "num_updates": "60"}')
    assert [what for what, _ in seen] == ["begin", "advance"]
    assert [share for _, share in seen] == pytest.approx([0.9 * 50 / 200, 0.9 * 0.9])
