"""Options of the search: what is impossible is refused in one line that names it, and the rest works in all pairs."""

import sys

import fairseq.options
import pytest
from fairseq.scoring import build_scorer

from conftest import (
    EACH_FAMILY,
    LONG,
    ROOT,
    TASK,
    TINY_LWC,
    TINY_STOCK,
    TINY_TRAINING,
    binarize,
    hypotheses,
    make_dictionary,
    refused,
    run,
)
from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.options import parse_words
from lwc_fairseq_compat.search_options import check_eval_bleu_args


def generation(command, data, checkpoint, *options, task=TASK):
    return (command, data, *task, "--path", checkpoint, "--cpu", "--num-workers", "0", *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--beam 0", "--beam 0: must be at least 1"),
        ("--nbest 0", "--nbest 0: must be at least 1"),
        ("--nbest 9", "--nbest 9 is more than --beam 5, and the search finds no more"),
        ("--temperature -1", "--temperature -1.0: must be a number from 0.0001"),
        ("--lenpen nan", "--lenpen nan: must be a number from -50 to 50"),
        ("--max-len-a inf", "--max-len-a inf: must be a number from 0"),
        ("--max-len-b 0", "--max-len-b 0 is less than --min-len 1"),
        ("--min-len -1", "--min-len -1: must be at least 0"),
        ("--sampling-topk 5", "--sampling-topk 5 needs --sampling"),
        ("--sampling --nbest 5 --sampling-topp 2", "--sampling-topp 2.0: must be above 0 and at most 1"),
        ("--sampling --sampling-topk 3 --sampling-topp 0.5", "--sampling-topk 3 and --sampling-topp 0.5 exclude"),
        ("--sampling --match-source-len", "--sampling and --match-source-len are different searches"),
        ("--diverse-beam-groups 2", "--beam 5 is not divisible by --diverse-beam-groups 2"),
        (
            "--diverse-beam-groups 5 --diversity-rate 1",
            "--diverse-beam-groups 5 and --diversity-rate 1.0 are",
        ),
        ("--lenpen 2 --unnormalized", "--lenpen 2.0 has no effect with --unnormalized: leave one out"),
        ("--diverse-beam-strength 2", "--diverse-beam-strength 2.0 needs --diverse-beam-groups"),
        ("--score-reference --sampling", "--score-reference does not search: leave out --sampling"),
        ("--score-reference --lenpen 2", "--score-reference does not search: leave out --lenpen"),
        ("--score-reference --unnormalized", "--score-reference does not search: leave out --unnormalized"),
        ("--lm-weight 0.5", "--lm-weight 0.5 needs --lm-path, a language model"),
        ("--lm-path none.pt --lm-weight 0.5", "--lm-path none.pt: no such file"),
        ("--post-process foo", "--post-process foo: choose one of subword_nmt"),
        ("--replace-unk --post-process", "--replace-unk counts the tokens of the data"),
        ("--num-shards 2 --shard-id 2", "--shard-id 2: with --num-shards 2 it must be from 0 to 1"),
        ("--beem 3", "fairseq-generate: unrecognized arguments: --beem 3; there is --beam"),
        ("--nothing-like-it", "fairseq-generate: unrecognized arguments: --nothing-like-it: leave them out"),
    ],
)
def test_flags_that_are_refused_before_a_command_or_a_table_begins(options, message):
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        parse_words("fairseq-generate", ["data", "--task", "concat_translation", *options.split()])


def test_refused_by_the_commands(tiny_data, tiny_checkpoint):
    for options, message in {
        "--sampling --nbest 5 --sampling-topk 300": "--sampling-topk 300: the target vocabulary has only 48 types",
        "--constraints": "--constraints: there are none, because a test set has none: leave it out, or use",
        f"--lm-weight 0.3 --lm-path {tiny_checkpoint}": "a LWCTransformerModel, but this must be a language model",
        "--min-len 1024 --max-len-b 3000": "a translation of this model has at most 1023 tokens",
        "--num-shards 50 --shard-id 49": "--shard-id 49: the number of batches of test is 2: lower --num-shards",
    }.items():
        assert message in refused(*generation("fairseq-generate", tiny_data, tiny_checkpoint, *options.split()))
    message = refused("lwc-fairseq", "translate", tiny_checkpoint, "--lenpen", "nan", stdin="ba\n")
    assert message.endswith("error: --lenpen nan: must be a number from -50 to 50")


def test_interactive_has_no_references(tiny_data, tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fairseq-interactive"])
    for options in ("--score-reference", "--prefix-size 2", "--sacrebleu", "--results-path out", "--lm-path lm.pt"):
        parser = fairseq.options.get_interactive_generation_parser()
        with pytest.raises(UserError, match=f"{options.split()[0]}: only fairseq-generate can do this"):
            fairseq.options.parse_args_and_arch(parser, ["data", *options.split()])
    message = refused(*generation("fairseq-interactive", tiny_data, tiny_checkpoint, "--sacrebleu"), stdin="ba\n")
    assert message.startswith("fairseq-interactive: error: --sacrebleu: only")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beem": 3}, "beem: there is no such option; there is beam"),
        ({"beam": 0}, "beam 0: must be at least 1"),
        ({"beam": "5"}, "beam '5': must be a whole number"),
        ({"lenpen": True}, "lenpen True: must be a number"),
        ({"sampling_topk": 5}, "sampling_topk 5 needs sampling"),
        ({"print_alignment": "yes"}, "print_alignment 'yes': must be one of hard, soft or None"),
        ({"score_reference": True}, "score_reference: has no effect on translations of the validation set"),
        ({"constraints": "ordered"}, "constraints: has no effect"),
    ],
)
def test_eval_bleu_args(options, message):
    with pytest.raises(UserError, match=f"--eval-bleu-args: {message}"):
        check_eval_bleu_args(options)


def test_eval_bleu_args_that_are_right():
    check_eval_bleu_args({"beam": 4, "lenpen": 1, "max_len_a": 1.2, "max_len_b": 10, "sampling": False})


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("--sampling --nbest 5 --unkpen=-1e6", marks=LONG),  # an overflow
        pytest.param("--sampling --nbest 5 --temperature 1e-4 --prefix-size 3", marks=LONG),  # probabilities of 0
        "--prefix-size 9 --no-repeat-ngram-size 1",  # which would block the prefix
        pytest.param("--match-source-len --print-alignment", marks=LONG),  # fewer hypotheses than the beam
        pytest.param("--max-len-a 0.1 --max-len-b 0", marks=LONG),  # less than --min-len
    ],
)
def test_extreme_options_that_work_together(tiny_data, tiny_checkpoint, options):
    done = run(*generation("fairseq-generate", tiny_data, tiny_checkpoint, "--batch-size", "3", *options.split()))
    assert len(hypotheses(done.stdout)) == 20


@LONG
def test_alignments_of_references(tiny_data, checkpoints):
    options = ("--score-reference", "--print-alignment")
    message = refused(*generation("fairseq-generate", tiny_data, checkpoints["lwc"], *options))
    assert "--print-alignment: this model gives no alignments with --score-reference" in message
    done = run(*generation("fairseq-generate", tiny_data, checkpoints["deepatt"], *options))
    assert done.stdout.count("\nA-") == 20


def test_constraints_that_cannot_be_met(tiny_data, tiny_checkpoint):
    """Each line is translated; warnings name the constraints that are left out, and those with unknown words."""
    text = "ba de\tGO GU\n\nfi\t" + "FA " * 9 + "\nga ge gi\t\nba\tseen\nde\tGA\tBE\n"
    for options in (("--constraints",), ("--constraints", "unordered", "--print-alignment")):
        given = ("--max-len-b", "8", "--buffer-size", "6", "--batch-size", "6", *options)
        done = run(*generation("fairseq-interactive", tiny_data, tiny_checkpoint, *given), stdin=text)
        found = [words for words, _ in hypotheses(done.stdout)]
        assert len(found) == 6 and "<unk>" in found[4] and {"GA", "BE"} <= set(found[5].split())
        printed = done.stdout + done.stderr
        assert printed.count("cannot be met in a translation as long as") == 1
        assert "the constraints FA FA FA FA FA FA FA FA FA cannot" in printed
        assert "WARNING" in printed and "words that the target vocabulary lacks" in printed


class TestLongSentences:
    """The limit is the model's, or the command's; only the latter can be raised."""

    SHORT = ("--model-overrides", "{'max_source_positions': 4, 'max_target_positions': 4}")

    def test_of_a_data_set(self, tiny_data, tiny_checkpoint):
        generate = generation("fairseq-generate", tiny_data, tiny_checkpoint)
        message = refused(*generate, *self.SHORT)
        assert "since max_positions=(4, 4), skip this example with --skip-invalid-size-inputs-valid-test" in message
        assert "The limits are those of the model, which was trained with these" in message
        message = refused(*generate, "--max-source-positions", "4")
        assert message.endswith("raise --max-source-positions and --max-target-positions")
        message = refused(*generate, "--max-source-positions", "1", "--skip-invalid-size-inputs-valid-test")
        assert "all 20 sentences of test are left out, because the maximum number of tokens is (1, 1024)" in message

    @LONG
    def test_of_a_validation_set(self, tiny_data, tmp_path):
        short = ("--max-source-positions", "6", "--max-target-positions", "6", "--max-update", "1")
        train = ("fairseq-train", tiny_data, *TASK, *TINY_TRAINING, *TINY_LWC[2:], *short, "--save-dir", tmp_path)
        assert refused(*train).endswith("raise --max-source-positions and --max-target-positions")
        run(*train, "--skip-invalid-size-inputs-valid-test")
        validate = (
            "fairseq-validate",
            tiny_data,
            "--path",
            tmp_path / "checkpoint_last.pt",
            *TASK,
            "--max-tokens",
            "99",
        )
        assert "The limits are those of the model" in refused(*validate)

    @pytest.mark.parametrize("model", ["ours", pytest.param("stock", marks=LONG)])
    def test_no_line_of_interactive_input_is_lost(self, tiny_data, tiny_checkpoint, tmp_path, model):
        if model == "stock":
            out = ("--max-update", "1", "--save-dir", tmp_path)
            run("fairseq-train", tiny_data, *TINY_TRAINING, *TINY_STOCK, *out)
            tiny_checkpoint = tmp_path / "checkpoint_last.pt"
        text = "ba de\n" + "ba " * 9 + "\n\nfi\n"
        translation = ("--user-dir", "lwc_fairseq", "--task", "translation", "--max-source-positions", "4")
        more = ("--skip-invalid-size-inputs-valid-test", "--buffer-size", "4", "--batch-size", "4")
        command = generation("fairseq-interactive", tiny_data, tiny_checkpoint, *more, task=translation)
        done = run(*command, stdin=text)
        assert len(hypotheses(done.stdout)) == 4
        assert "a source has 10 tokens" in done.stdout + done.stderr


class TestScoresOfUnknownWords:
    @pytest.fixture(scope="class")
    def data(self, tiny_text, tiny_data, tmp_path_factory):
        """The test set with an unknown word in its first reference; and the number of words in the references."""
        folder = tmp_path_factory.mktemp("unknown")
        for split in ("train", "valid", "test"):
            for language in ("de", "en"):
                (folder / f"{split}.{language}").write_text((tiny_text / f"{split}.{language}").read_text())
        words = (folder / "test.en").read_text()
        (folder / "test.en").write_text(words.replace(words.split()[0], "unheard", 1))
        known = ("--srcdict", tiny_data / "dict.de.txt", "--joined-dictionary")
        return binarize(folder, folder / "bin", *known), len(words.split())

    @pytest.mark.parametrize(
        "options",
        [
            "--sacrebleu --sacrebleu-tokenizer intl",
            *(pytest.param(options, marks=LONG) for options in ("--scoring sacrebleu", "--sacrebleu")),
        ],
    )
    def test_count_as_one_word(self, data, tiny_checkpoint, options):
        folder, words = data
        done = run(*generation("fairseq-generate", folder, tiny_checkpoint, "--quiet", *options.split()))
        assert f"ref_len = {words})" in done.stdout

    def test_share_no_letters(self):
        """In chrF, `<<unk>>` would share letters with `<unk>`, and both with other words."""
        scores = []
        for reference, translation in (("<<unk>> ab", "<unk> ab"), ("x ab", "y ab")):
            scorer = build_scorer("chrf", make_dictionary(9))
            scorer.add_string(reference, translation)
            scores.append(scorer.result_string())
        assert scores[0] == scores[1]

    def test_a_scorer_that_is_not_installed(self, tiny_data, tiny_checkpoint):
        message = refused(*generation("fairseq-generate", tiny_data, tiny_checkpoint, "--scoring", "bert_score"))
        assert "--scoring bert_score: Please install BERTScore" in message


class TestScoreCommand:
    @pytest.fixture
    def files(self, tmp_path):
        for name, lines in (("sys", "a b c d e\nC d e f\n"), ("ref", "a b c d e\nc d e f\n"), ("short", "a b c d e\n")):
            (tmp_path / name).write_text(lines)
        return tmp_path

    def test_each_line_needs_its_reference(self, files):
        lines = (files / "sys").read_text()
        for system, options in (("-", ()), (files / "sys", ("--sacrebleu",)), ("-", ("--sentence-bleu",))):
            message = refused("fairseq-score", "--sys", system, "--ref", files / "short", *options, stdin=lines)
            assert f"--sys {system} has 2 and --ref {files / 'short'} has 1 lines" in message

    def test_options(self, files):
        given = ("fairseq-score", "--sys", files / "sys", "--ref", files / "ref")
        assert refused(*given, "--order", "5").endswith("--order 5: must be from 1 to 4")
        assert "--order 2 has no effect with --sacrebleu" in refused(*given, "--order", "2", "--sacrebleu")
        assert "--sentence-bleu has no effect with --sacrebleu" in refused(*given, "--sentence-bleu", "--sacrebleu")
        assert "BLEU = 100.00" in run(*given, "--sacrebleu", "--ignore-case").stdout


@LONG
@pytest.mark.parametrize("command", ["generate", "interactive"])
@EACH_FAMILY
def test_every_pair_of_options(tiny_data, checkpoints, command, family):
    more = ("--buffer-size", "5") if command == "interactive" else ()
    words = generation(command, tiny_data, checkpoints[family], *more)
    done = run(sys.executable, ROOT / "tests" / "search_pairs.py", *words, "1", check=False)
    assert done.returncode == 0, [part for part in done.stdout.split("\n") if part.startswith("failed")]
