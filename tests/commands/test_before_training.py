"""What can be known before a training is said before it, and what its validation finds out does not cost the epoch."""

import shutil
from textwrap import dedent

import numpy as np
import pytest
import torch
from fairseq import metrics, options
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from conftest import (
    LONG,
    ROOT,
    TASK,
    TINY_LWC,
    TINY_RECURRENT,
    TINY_TRAINING,
    assert_same_end,
    make_dictionary,
    refused,
    run,
    saved_updates,
)
from lwc_fairseq_compat import UserError

MODEL = (*TASK, "--arch", "rnnsearch", *TINY_RECURRENT, *TINY_TRAINING)
BLEU = ("--eval-bleu", "--eval-bleu-args")
PLATEAU = ("--lr-scheduler", "reduce_lr_on_plateau")
LOST = "no/such.pt"


def training(data, out, *flags):
    return ("fairseq-train", data, *MODEL, "--max-update", "2", "--save-dir", out, *flags)


def parse(*flags):
    """The options that fairseq-train reads from its command line."""
    return options.parse_args_and_arch(options.get_training_parser(), ["data", *MODEL, *flags])


def schedule(name, *flags):
    return ("--lr-scheduler", name, *flags)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (schedule("inverse_sqrt", "--warmup-updates", "0"), "inverse_sqrt: --warmup-updates 0: .* at least 1"),
        (schedule("inverse_sqrt", "--lr", "0.1,0.2"), "--lr 0.1,0.2: .*inverse_sqrt takes one learning rate"),
        (schedule("polynomial_decay"), "polynomial_decay: add --total-num-update"),
        (schedule("cosine"), "cosine: add --lr-period-updates or --max-update"),
        (schedule("cosine", "--max-update", "3", "--warmup-updates", "3"), "--max-update 3 must be more than"),
        (schedule("cosine", "--max-update", "3", "--min-lr", "1"), "--min-lr 1.0 must be less than --lr 0.003"),
        (schedule("cosine", "--max-update", "3", "--t-mult", "0.5"), "--t-mult 0.5: must be at least 1"),
        (schedule("tri_stage", "--warmup-steps", "2"), "tri_stage: add --decay-steps, or --phase-ratio"),
        (schedule("tri_stage", "--phase-ratio", "0.2,0.3,0.4"), "--phase-ratio 0.2,0.3,0.4: .* sum is 1"),
        (schedule("tri_stage", "--phase-ratio", "0.2,0.3,0.5"), "--phase-ratio needs --max-update"),
        (schedule("tri_stage", "--decay-steps", "2", "--final-lr-scale", "0"), "--final-lr-scale 0.0: must be more"),
        (schedule("triangular", "--max-lr", "0.001"), "--max-lr 0.001 must be more than --lr 0.003"),
        (schedule("triangular", "--max-lr", "1", "--lr-period-updates", "1"), "--lr-period-updates 1.0: must be at"),
        ((*PLATEAU, "--lr-shrink", "1.5"), "--lr-shrink 1.5: must be less than 1"),
        ((*PLATEAU, "--disable-validation"), "reduce_lr_on_plateau uses the results of validation"),
        (schedule("step", "--lr-deacy-period", "0"), "--lr-deacy-period 0: must be at least 1"),
        (schedule("manual", "--epoch2lr", "{1: 0.1}"), "--epoch2lr .*give numbers in quotes"),
        (("--adam-betas", "(0.9 0.98)"), r"--adam-betas \(0.9 0.98\): give two numbers"),
        (("--adam-betas", "0.9"), "--adam-betas 0.9: give two numbers"),
        (("--optimizer", "adamax", "--adamax-betas", "0.9"), "--adamax-betas 0.9: give two numbers"),
        (("--optimizer", "fused_adam", "--adam-eps", "-1"), "--adam-eps -1.0: must be a number above 0"),
        (("--optimizer", "rmsprop", "--rmsprop-eps", "0"), "--rmsprop-eps 0.0: must be a number above 0"),
        (("--optimizer", "rmsprop", "--rmsprop-rho", "1.5"), "--rmsprop-rho 1.5: must be in"),
        (("--lr", "-0.1"), "--lr -0.1: give learning rates"),
        (("--update-freq", "0"), "--update-freq 0: give whole numbers from 1"),
        (("--save-interval", "0"), "--save-interval 0: must be at least 1"),
        (("--optimizer-overrides", "{'lr': 1"), "--optimizer-overrides {'lr': 1: give a dictionary"),
        (("--patience", "2", "--disable-validation"), "--patience 2 uses the results of validation, but --disable"),
        (("--keep-best-checkpoints", "2", "--max-epoch", "2", "--validate-interval", "3"), "--validate-interval 3 is"),
        (("--patience", "2", "--max-update", "2", "--validate-after-updates", "3"), "--validate-after-updates 3 is"),
        ((*BLEU, "x"), "--eval-bleu-args x: give JSON"),
        ((*BLEU, '{"beem": 4}'), "--eval-bleu-args: beem: there is no such option; there is beam"),
        (("--eval-bleu", "--eval-bleu-remove-bpe", "subwords"), "--eval-bleu-remove-bpe subwords: there is no such"),
        (("--eval-bleu", "--eval-bleu-detok", "mosse"), "--eval-bleu-detok mosse: no such tokenizer; give moses"),
        (
            ("--eval-bleu", "--eval-bleu-detok", "moses", "--eval-bleu-detok-args", '{"l": 1}'),
            "l: there is no such",
        ),
        (("--restore-file", LOST), f"--restore-file {LOST}: no such file; to begin a new training, leave"),
        (("--restore-file", "."), "--restore-file . is a folder: give a checkpoint in it"),
        (("--finetune-from-model", LOST), f"--finetune-from-model {LOST}: no such file"),
        (("--finetune-from-model", __file__, "--reset-meters"), "cannot be combined with --reset-meters"),
        (("--continue-once", LOST), f"--continue-once {LOST}: no such file"),
        (("--log-file", "no/such.log"), "--log-file no/such.log: there is no folder no"),
    ],
    ids=str,
)
def test_options_that_cannot_work(flags, message):
    with pytest.raises(UserError, match=message):
        parse(*flags)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--lr", "0.1 0.2"), "argument --lr: 0.1 0.2: give values with commas"),
        (schedule("triangular"), "the following arguments are required: --max-lr"),
    ],
)
def test_options_that_cannot_be_read(flags, message, capsys):
    with pytest.raises(SystemExit):
        parse(*flags)
    assert message in capsys.readouterr().err


@LONG
def test_options_that_work_stay_accepted(tiny_data, tmp_path):
    """A total that is the maximum of updates, parts whose sum is 1 up to rounding, and other values at the limits."""
    parse(*BLEU, '{"beam": 4, "lenpen": 1, "max_len_a": 1.2, "sampling": false}', "--patience", "2")
    parse("--adam-betas", "[0.0, 0.5]", "--best-checkpoint-metric", "x", "--disable-validation")
    run(*training(tiny_data, tmp_path, *schedule("polynomial_decay"), "--adam-eps", "0.1", "--no-save"))
    run(*training(tiny_data, tmp_path, *schedule("tri_stage", "--phase-ratio", "0.3,0.6,0.1", "--max-update", "10")))


def test_hydra_says_the_same(tiny_data, tmp_path):
    given = ("--config-dir", ROOT / "examples" / "configs", "--config-name", "rnnsearch", f"task.data={tiny_data}")
    message = refused("fairseq-hydra-train", *given, "dataset.disable_validation=true", cwd=tmp_path)
    assert message.endswith(
        "--patience 3 uses the results of validation, but --disable-validation is given: leave one of them out"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--best-checkpoint-metric", "blue"), "--best-checkpoint-metric blue: validation on valid does not give it"),
        pytest.param(("--max-source-positions", "4"), "Size of sample", marks=LONG),
        ((*BLEU, '{"min_len": 300}'), "--eval-bleu-args: max_len_b 200 is less than min_len 300"),
    ],
)
def test_validation_is_tried_before_the_first_update(tiny_data, tmp_path, flags, message):
    done = run(*training(tiny_data, tmp_path, *flags), check=False)
    assert message in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr
    assert "begin training epoch" not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


@LONG
def test_the_trial_changes_nothing(tiny_data, tmp_path):
    """Neither the weights nor the metrics in the checkpoint, in which the results of the validation are."""
    run(*training(tiny_data, tmp_path / "plain"))
    run(*training(tiny_data, tmp_path / "tried", "--best-checkpoint-metric", "nll_loss"))
    assert_same_end(tmp_path / "plain", tmp_path / "tried")
    counts = []
    for name in ("plain", "tried"):
        state = torch.load(tmp_path / name / "checkpoint_last.pt")["extra_state"]["metrics"]
        counts.append({meter: values.get("count") for _, meter, _, values in state["valid"] if meter == "loss"})
    assert counts[0] == counts[1]


PLUGIN = """
    from fairseq import metrics
    from fairseq.criterions import register_criterion
    from fairseq.criterions.cross_entropy import CrossEntropyCriterion

    class Own(CrossEntropyCriterion):
        is_trained = False

        def forward(self, model, sample, reduce=True):
            Own.is_trained |= model.training
            return super().forward(model, sample, reduce)

        @classmethod
        def reduce_metrics(cls, logs):
            super().reduce_metrics(logs)
            if sum(log["nsentences"] for log in logs) > 1:
                metrics.log_scalar("late", 1)  # not on a batch of one sentence
            if not Own.is_trained:
                metrics.log_scalar("early", 1)

    @register_criterion("own_metrics")
    class OwnMetrics(Own):
        pass

    @register_criterion("breaking")
    class Breaking(Own):
        def forward(self, model, sample, reduce=True):
            if Own.is_trained and not model.training:
                raise RuntimeError("it broke")
            return super().forward(model, sample, reduce)
"""


class TestOwnCriterions:
    @pytest.fixture
    def train(self, tiny_data, tmp_path):
        (tmp_path / "own").mkdir()
        (tmp_path / "own" / "__init__.py").write_text(dedent(PLUGIN))
        flags = ("--user-dir", f"lwc_fairseq:{tmp_path / 'own'}", "--criterion")
        return lambda *more: training(tiny_data, tmp_path / "out", *flags, *more)

    def test_a_metric_that_one_sentence_does_not_give(self, train, tmp_path):
        run(*train("own_metrics", "--best-checkpoint-metric", "late"))
        assert (tmp_path / "out" / "checkpoint_best.pt").exists()

    @pytest.mark.parametrize("criterion", ["own_metrics", "breaking"])
    def test_validation_that_fails_does_not_cost_the_epoch(self, train, tmp_path, criterion):
        failed = run(*train(criterion, "--best-checkpoint-metric", "early"), check=False)
        assert failed.returncode
        last_line = failed.stderr.splitlines()[-1]
        if criterion == "breaking":
            assert last_line == "RuntimeError: it broke"
        else:
            assert "error: --best-checkpoint-metric early: validation on valid does not give it" in last_line
        assert "the training is saved, and the same command goes on there" in failed.stdout + failed.stderr
        assert saved_updates(tmp_path / "out" / "checkpoint_last.pt") == 2


class TestBleuOfEmptyTranslations:
    def test_is_0(self, tiny_data, tmp_path):
        best = ("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric")
        done = run(*training(tiny_data, tmp_path, *BLEU, '{"min_len": 0, "max_len_b": 0}', *best))
        assert "| bleu 0 |" in done.stdout + done.stderr
        assert (tmp_path / "checkpoint_best.pt").exists()

    def test_counts_beside_others(self):
        """Their references make the brevity penalty; fairseq left them out."""
        dictionary = make_dictionary(9)
        task = TranslationTask(TranslationConfig(eval_bleu=True), dictionary, dictionary)
        whole = {"_bleu_sys_len": 8, "_bleu_ref_len": 8} | {f"_bleu_counts_{i}": 8 - i for i in range(4)}
        whole |= {f"_bleu_totals_{i}": 8 - i for i in range(4)}
        empty = {name: 8 if name == "_bleu_ref_len" else 0 for name in whole}
        sizes = {"loss": 1.0, "sample_size": 1, "ntokens": 1, "nsentences": 1}
        for logs in ([whole, empty], [empty, whole]):
            with metrics.aggregate(new_root=True) as values:
                for log in logs:
                    task.reduce_metrics([log | sizes], CrossEntropyCriterion(task, sentence_avg=False))
            assert values.get_smoothed_values()["bleu"] == round(100 * np.exp(1 - 16 / 8), 2)


class TestDataWithoutTargets:
    @pytest.fixture(scope="class")
    def sources(self, tiny_data, tmp_path_factory):
        """What fairseq-preprocess --only-source writes, and the target's dictionary."""
        folder = shutil.copytree(tiny_data, tmp_path_factory.mktemp("sources") / "bin")
        for path in folder.glob("*.de-en.en.*"):
            path.unlink()
        return folder

    @pytest.mark.parametrize(
        ("split", "command"),
        [
            ("test", ("fairseq-generate", "--score-reference")),
            pytest.param("test", ("fairseq-generate", "--prefix-size", "2"), marks=LONG),
            ("valid", ("fairseq-validate",)),
            ("test", ("lwc-fairseq", "align")),
            pytest.param("train", ("fairseq-train",), marks=LONG),
        ],
        ids=str,
    )
    def test_one_line(self, sources, tiny_checkpoint, tmp_path, split, command):
        name, *flags = command
        whole = {
            "lwc-fairseq": (*command, tiny_checkpoint, "--data", sources),
            "fairseq-train": training(sources, tmp_path),
        }.get(name, (name, sources, *TASK, "--path", tiny_checkpoint, "--cpu", "--max-tokens", "400", *flags))
        file = sources / f"{split}.de-en.en"
        assert f"error: the data has no targets ({file} is missing), which" in refused(*whole)

    def test_is_translated(self, sources, tiny_checkpoint):
        model = (*TASK, "--path", tiny_checkpoint, "--cpu", "--max-len-b", "5")
        assert run("fairseq-generate", sources, *model).stdout.count("\nH-") == 20

    @LONG
    def test_only_validation_needs_the_targets_of_its_set(self, tiny_data, tmp_path):
        data = shutil.copytree(tiny_data, tmp_path / "bin")
        for path in data.glob("valid.de-en.en.*"):
            path.unlink()
        message = refused(*training(data, tmp_path / "out"))
        assert f"the data has no targets ({data / 'valid.de-en.en'} is missing)" in message
        run(*training(data, tmp_path / "out", "--disable-validation"))

    def test_of_a_later_shard(self, tiny_data, sources, tmp_path):
        message = refused(*training(f"{tiny_data}:{sources}", tmp_path))
        assert f"error: data folder {sources}: its train has no data of en" in message


@LONG
def test_a_shard_that_is_missing(tiny_data, tmp_path):
    assert "error: data folder no/such: No such file" in refused(*training(f"{tiny_data}:no/such", tmp_path))


LIMIT = ("--max-source-positions", "1", "--skip-invalid-size-inputs-valid-test")


@pytest.mark.parametrize("command", [*(pytest.param(name, marks=LONG) for name in ("generate", "validate")), "train"])
def test_all_sentences_left_out(tiny_data, tiny_checkpoint, tmp_path, command):
    whole = (f"fairseq-{command}", tiny_data, *TASK, "--path", tiny_checkpoint, "--cpu", "--max-tokens", "400", *LIMIT)
    message = refused(*(training(tiny_data, tmp_path, *LIMIT) if command == "train" else whole))
    split = {"generate": "20 sentences of test", "validate": "20 sentences of valid", "train": "200 sentences of train"}
    assert f"all {split[command]} are left out, because the maximum number of tokens is (1, " in message


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (schedule("inverse_sqrt"), "trained with another --lr-scheduler: give that one, or add --reset-lr-scheduler"),
        pytest.param(("--optimizer", "fused_adam"), "please reset the optimizer (--reset-optimizer)", marks=LONG),
        pytest.param(("--optimizer-overrides", "{'lrr': 1}"), "the optimizer has no lrr, only lr, betas", marks=LONG),
    ],
    ids=str,
)
def test_a_checkpoint_of_another_optimizer_or_schedule(tiny_data, tiny_checkpoint, tmp_path, flags, message):
    given = ("fairseq-train", tiny_data, *TASK, *TINY_LWC[2:], *TINY_TRAINING, "--restore-file", tiny_checkpoint)
    assert message in refused(*given, "--save-dir", tmp_path, *flags)


@pytest.mark.parametrize("word", [pytest.param("-h", marks=LONG), "--help"])
def test_help_shows_the_options_of_what_is_chosen(word):
    chosen = ("--arch", "lwc_transformer_small", "--criterion", "bidirectional_cross_entropy", "--optimizer", "rmsprop")
    printed = run("fairseq-train", *TASK, *chosen, word).stdout
    for option in ("--windows", "--forward-weight", "--rmsprop-rho", "--reverse-target", "--lr "):
        assert f"\n  {option}" in printed


def test_help_without_a_model():
    assert "\n  --arch" in run("fairseq-train", "--help").stdout


def test_a_training_without_a_model():
    message = "fairseq-train: error: --arch is missing: name a model, such as --arch transformer"
    assert refused("fairseq-train", "data", *TASK) == message
