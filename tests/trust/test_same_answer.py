"""Translations and their scores depend neither on the other sentences of a batch nor on how the work is divided."""

import pytest

from conftest import EACH_FAMILY, ONE_FAMILY, TASK, hypotheses, run


@pytest.fixture(scope="module")
def translate(tiny_data, checkpoints):
    """Hypotheses and scores of the test set, by the numbers of their sentences."""

    def call(family, *flags, **environment):
        options = (*TASK, "--path", checkpoints[family], "--beam", "4", "--max-len-b", "12", "--cpu")
        output = run("fairseq-generate", tiny_data, *options, *flags, **environment).stdout
        lines = (line[2:].split("\t") for line in output.splitlines() if line.startswith("H-"))
        return {int(number): (text, float(score)) for number, score, text in lines}

    return call


def assert_same(found: dict, expected: dict) -> None:
    assert {number: text for number, (text, _) in found.items()} == {
        number: text for number, (text, _) in expected.items()
    }
    for number, (_, score) in found.items():
        assert score == pytest.approx(expected[number][1], abs=1e-5)


class TestSameAnswer:
    @EACH_FAMILY
    def test_of_any_batch_size_task_and_padding_side(self, translate, family):
        """One sentence at a time has no neighbours and no padding. (The flag turns left padding off.)"""
        alone = translate(family, "--batch-size", "1")
        assert len(alone) == 20
        for flags in (
            ("--batch-size", "7", "--task", "translation"),
            ("--max-tokens", "9999"),
            ("--left-pad-source", "--batch-size", "20"),
        ):
            assert_same(translate(family, *flags), alone)

    @ONE_FAMILY
    def test_of_any_number_of_shards_and_threads(self, translate, family):
        whole = translate(family)
        shards = [translate(family, "--batch-size", "3", "--num-shards", "3", "--shard-id", i) for i in range(3)]
        assert_same({number: found for shard in shards for number, found in shard.items()}, whole)
        assert_same(translate(family, OMP_NUM_THREADS="2"), whole)

    @ONE_FAMILY
    def test_of_any_order(self, tiny_data, checkpoints, family):
        """With fairseq-interactive, which makes batches of the lines that it reads together."""
        lines = ["ba de", "fi", "ga ge gi go ba de fi", "", "ku no-such-word", "bo bo bo", "fi"]
        flags = (*TASK, "--path", checkpoints[family], "--beam", "4", "--max-len-b", "12", "--cpu")

        def translate(texts, *more):
            said = run("fairseq-interactive", tiny_data, *flags, *more, stdin="".join(f"{t}\n" for t in texts)).stdout
            return hypotheses(said)

        together = translate(lines, "--buffer-size", "99", "--batch-size", "99")
        backwards = translate(lines[::-1], "--buffer-size", "3", "--batch-size", "2")[::-1]
        assert_same(dict(enumerate(backwards)), dict(enumerate(together)))
