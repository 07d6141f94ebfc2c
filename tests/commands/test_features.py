"""What users of fairseq do, with a model of each family; `examples/fairseq_features.md` lists it."""

import json
import re
import shutil
from itertools import pairwise

import pytest
import torch
from fairseq.models import MODEL_REGISTRY

from conftest import EACH_FAMILY, FAMILIES, LONG, ONE_FAMILY, ROOT, TASK, TINY_TRAINING, run, saved_updates


def train(data, out, family, *flags, **settings):
    training = (*TASK, *TINY_TRAINING, *FAMILIES[family], "--save-dir", out)
    return run("fairseq-train", data, *training, *flags, **settings)


def log_lines(done) -> str:
    return done.stdout + done.stderr


def saved(folder, name="checkpoint_last.pt"):
    return torch.load(folder / name)


def updates(folder) -> int:
    return saved_updates(folder / "checkpoint_last.pt")


def same(one: dict, other: dict) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.fixture(scope="session")
def two_sets(tiny_data, tmp_path_factory):
    """The pairs of `tiny_text`, and the test pairs as a second training set, `train1`."""
    out = tmp_path_factory.mktemp("two_sets")
    for path in tiny_data.iterdir():
        shutil.copy(path, out / path.name)
        if path.name.startswith("test."):
            shutil.copy(path, out / path.name.replace("test.", "train1.", 1))
    return out


@ONE_FAMILY
class TestTraining:
    def test_bleu_patience_and_which_checkpoints_are_kept(self, tiny_data, tmp_path, family):
        kept = ("--keep-last-epochs", "1", "--patience", "2", "--eval-bleu", "--eval-bleu-args", '{"beam": 2}')
        best = ("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric", "--eval-bleu-remove-bpe")
        options = [flag for flag in TINY_TRAINING if flag != "--no-epoch-checkpoints"]
        flags = (*TASK, *options, *FAMILIES[family], *kept, *best, "--lr", "1e-9", "--max-epoch", "9")
        log = log_lines(run("fairseq-train", tiny_data, *flags, "--save-dir", tmp_path))
        assert "early stop since valid performance hasn't improved for last 2 runs" in log
        epochs = sorted(path.name for path in tmp_path.glob("checkpoint[0-9]*.pt"))
        assert epochs == ["checkpoint3.pt"]
        bleu = max(map(float, re.findall(r" \| bleu ([\d.]+) ", log)))
        assert saved(tmp_path, "checkpoint_best.pt")["extra_state"]["best"] == pytest.approx(bleu, abs=0.01)

    @LONG
    def test_an_update_of_several_batches(self, tiny_data, tmp_path, family):
        train(tiny_data, tmp_path, family, "--update-freq", "2", "--max-epoch", "1")
        epoch = saved(tmp_path)["extra_state"]["train_iterator"]["epoch"]
        assert epoch == 2 and updates(tmp_path) < 6

    def test_averages_of_weights_while_training(self, tiny_data, tmp_path, family):
        train(tiny_data, tmp_path, family, "--store-ema", "--ema-decay", "0.5", "--ema-fp32", "--max-update", "3")
        state = saved(tmp_path)
        averages = state["extra_state"]["ema_fp32_params"]
        assert averages.keys() == state["model"].keys() and not same(averages, state["model"])
        train(tiny_data, tmp_path, family, "--store-ema", "--ema-decay", "1", "--ema-fp32", "--max-update", "4")
        assert updates(tmp_path) == 4 and same(saved(tmp_path)["extra_state"]["ema_fp32_params"], averages)

    def test_from_another_checkpoint(self, tiny_data, tmp_path, family, checkpoints):
        """With a learning rate of 0, the saved weights are those with which training began."""
        still = ("--lr", "0", "--max-update", "1")
        train(tiny_data, tmp_path / "tuned", family, "--finetune-from-model", checkpoints[family], *still)
        expected = torch.load(checkpoints[family])["model"]
        assert same(saved(tmp_path / "tuned")["model"], expected) and updates(tmp_path / "tuned") == 1

        resets = [f"--reset-{what}" for what in ("optimizer", "meters", "lr-scheduler", "dataloader")]
        train(tiny_data, tmp_path / "reset", family, "--restore-file", checkpoints[family], *resets, *still)
        assert same(saved(tmp_path / "reset")["model"], expected) and updates(tmp_path / "reset") == 1

        averages = ("--store-ema", "--ema-fp32", "--finetune-from-model", checkpoints[family], *still)
        train(tiny_data, tmp_path / "averaged", family, *averages)
        averaged = saved(tmp_path / "averaged")["extra_state"]["ema_fp32_params"]
        assert all(torch.allclose(averaged[name], expected[name].float()) for name in averaged)

        goes_on = ("--restore-file", checkpoints[family], "--lr", "0", "--max-update", "21")
        train(tiny_data, tmp_path / "on", family, *goes_on)
        assert same(saved(tmp_path / "on")["model"], expected) and updates(tmp_path / "on") == 21

    @LONG
    def test_long_sentences_are_left_out(self, tiny_data, tmp_path, family):
        short = ("--max-source-positions", "5", "--max-target-positions", "5", "--max-update", "1")
        log = log_lines(train(tiny_data, tmp_path, family, *short, "--skip-invalid-size-inputs-valid-test"))
        assert "samples have invalid sizes and will be skipped" in log

    def test_several_sets(self, two_sets, tmp_path, family):
        """`train` and `train1` are one set, of which the first can count twice."""
        one_batch = ("--batch-size", "999", "--max-tokens", "9999", "--required-batch-size-multiple", "1")
        flags = (*one_batch, "--upsample-primary", "2", "--max-epoch", "1", "--valid-subset", "valid,test")
        log = log_lines(train(two_sets, tmp_path, family, *flags, "--log-format", "json"))
        assert '"valid_loss"' in log and '"test_loss"' in log
        assert '"train_bsz": "420"' in log  # twice 200 and once 20

    @LONG
    def test_shards_of_data_are_read_in_turn(self, tiny_data, two_sets, tmp_path, family):
        log = log_lines(train(f"{tiny_data}:{two_sets}", tmp_path, family, "--max-epoch", "2"))
        loaded = [line for line in log.splitlines() if "loaded 200 examples" in line]
        assert any(str(tiny_data) in line for line in loaded) and any(str(two_sets) in line for line in loaded)

    def test_curves_for_tensorboard(self, tiny_data, tmp_path, family):
        curves = tmp_path / "curves"
        train(tiny_data, tmp_path, family, "--tensorboard-logdir", curves, "--log-interval", "1", "--max-update", "2")
        for part, names in (("train_inner", (b"loss", b"wps", b"lr")), ("valid", (b"loss", b"ppl"))):
            (events,) = (curves / part).iterdir()
            written = events.read_bytes()
            assert all(name in written for name in names)


@LONG
@ONE_FAMILY
def test_float16_is_refused_on_a_cpu(tiny_data, tmp_path, family):
    done = train(tiny_data, tmp_path, family, "--fp16", check=False)
    assert done.returncode and "error: --fp16 needs a CUDA device" in done.stderr.splitlines()[-1]


class Output:
    """What fairseq-generate or fairseq-interactive printed: lines by letter and number."""

    def __init__(self, text: str):
        self.lines = {}
        for line in text.splitlines():
            if found := re.match(r"([A-Z])-(\d+)\t(.*)", line):
                letter, number, rest = found.groups()
                self.lines.setdefault(letter, {}).setdefault(int(number), []).append(rest)
        self.texts = {number: rest[0].split("\t")[-1] for number, rest in self["H"].items()}

    def __getitem__(self, letter: str) -> dict[int, list[str]]:
        return self.lines.get(letter, {})


@pytest.fixture
def generate(tiny_data, checkpoints, family):
    def call(*flags, path=checkpoints[family]):
        options = (*TASK, "--path", path, "--beam", "3", "--max-len-b", "12", "--cpu")
        output = Output(run("fairseq-generate", tiny_data, *options, *flags).stdout)
        assert len(output.texts) == 20
        return output

    return call


@ONE_FAMILY
class TestGeneration:
    @LONG
    def test_sampling(self, generate):
        options = ("--sampling", "--beam", "1", "--seed")
        sampled, again = (generate(*options, "3", "--sampling-topk", "3") for _ in range(2))
        other = generate(*options, "4", "--sampling-topp", "0.9")
        assert sampled.texts == again.texts != other.texts

    def test_diverse_beams_and_lists(self, generate):
        plain = generate("--beam", "4", "--nbest", "4")
        diverse = generate("--beam", "4", "--nbest", "4", "--diverse-beam-groups", "4", "--diverse-beam-strength", "9")
        for found in (plain, diverse):
            assert all(len(rows) == 4 for rows in found["H"].values())
            for rows in found["H"].values():
                scores = [float(row.split("\t")[0]) for row in rows]
                assert scores == sorted(scores, reverse=True)
        assert diverse["H"] != plain["H"]

    def test_repetitions_are_blocked(self, generate):
        for text in generate("--no-repeat-ngram-size", "2", "--min-len", "6").texts.values():
            pairs = list(pairwise(text.split()))
            assert len(set(pairs)) == len(pairs) >= 5

    def test_lengths(self, generate):
        six = generate("--min-len", "6", "--max-len-a", "0", "--max-len-b", "6").texts
        assert all(len(text.split()) == 6 for text in six.values())
        matched = generate("--match-source-len")
        for number, (source,) in matched["S"].items():
            assert len(matched.texts[number].split()) == len(source.split())

    @LONG
    def test_unknown_words(self, generate):
        likes_unk = generate("--unkpen", "-99", "--max-len-b", "2")
        assert all("<unk>" in text for text in likes_unk.texts.values())
        assert not any("<unk>" in text for text in generate("--unkpen", "99").texts.values())


@pytest.fixture(scope="module")
def of_all_families(tiny_data, checkpoints):
    """The output of an ensemble of a model of each family."""
    flags = (*TASK, "--path", ":".join(map(str, checkpoints.values())), "--beam", "3", "--max-len-b", "12", "--cpu")
    return Output(run("fairseq-generate", tiny_data, *flags).stdout)


@EACH_FAMILY
class TestGenerationByEachDecoder:
    """Searches that call the decoder in another way than plain beam search."""

    def test_prefixes(self, generate):
        found = generate("--prefix-size", "2")
        for number, (target,) in found["T"].items():
            assert found.texts[number].split()[:2] == target.split()[:2]

    def test_alignments(self, generate):
        found = generate("--print-alignment", "hard", "--gnmt-length-penalty")
        for number, text in found.texts.items():
            links = [tuple(map(int, link.split("-"))) for link in found["A"][number][0].split()]
            assert [target for _, target in links] == list(range(len(text.split())))
            assert all(source < len(found["S"][number][0].split()) for source, _ in links)

    def test_scores_of_references(self, generate):
        found = generate("--score-reference")
        assert found.texts == {number: target for number, (target,) in found["T"].items()}

    def test_ensembles_of_presets_and_families(self, generate, of_all_families, checkpoints, family):
        alone = generate()
        twice = generate(path=f"{checkpoints[family]}:{checkpoints[family]}")
        assert twice.texts == alone.texts
        assert len(of_all_families.texts) == 20 and of_all_families["H"] != alone["H"]


@ONE_FAMILY
class TestInteractive:
    @pytest.fixture
    def interactive(self, tiny_data, checkpoints, family):
        def call(text, *flags):
            options = (*TASK, "--path", checkpoints[family], "--beam", "3", "--max-len-b", "12", "--cpu")
            return Output(run("fairseq-interactive", tiny_data, *options, *flags, stdin=text).stdout)

        return call

    @LONG
    def test_buffers(self, interactive):
        text = "ba de\nfi\nga ge gi\nku\n"
        buffered = interactive(text, "--buffer-size", "3", "--max-tokens", "50")
        assert buffered.texts == interactive(text).texts and len(buffered.texts) == 4

    def test_unknown_words_are_replaced(self, interactive, tmp_path):
        """By the translation of the source word that they are aligned to, or by that word itself."""
        (tmp_path / "dict").write_text("ba <ba>\n")
        flags = ("--unkpen", "-99", "--max-len-b", "4", "--replace-unk", tmp_path / "dict")
        for more in ((), ("--print-alignment", "hard")):
            words = interactive("ba de ba de\n", *flags, *more).texts[0].split()
            assert words and set(words) <= {"<ba>", "de"}

    def test_unknown_words_are_copied(self, interactive):
        """`--replace-unk` without a file works as with an empty file name."""
        words = interactive("ba de\n", "--unkpen", "-99", "--max-len-b", "4", "--replace-unk").texts[0].split()
        assert words and set(words) <= {"ba", "de"}

    def test_alignments_are_those_of_a_test_set(self, interactive, tiny_text, tiny_data, checkpoints, family):
        flags = (*TASK, "--path", checkpoints[family], "--beam", "3", "--max-len-b", "12", "--cpu")
        typed = interactive((tiny_text / "test.de").read_text(), "--print-alignment", "soft")["A"]
        assert len(typed) == 20
        of_the_set = Output(run("fairseq-generate", tiny_data, *flags, "--print-alignment", "soft").stdout)["A"]
        for number, (line,) in of_the_set.items():
            rows, expected = ([row.split(",") for row in text.split()] for text in (typed[number][0], line))
            for row, weights in zip(rows, expected, strict=True):
                assert [float(weight) for weight in row] == pytest.approx([float(w) for w in weights], abs=1e-5)

    @LONG
    def test_constraints(self, interactive):
        for kind in ("ordered", "unordered"):
            found = interactive("ba de\tDE BA\nfi go\tGO\n", "--constraints", kind, "--beam", "6", "--buffer-size", "2")
            assert {"DE", "BA"} <= set(found.texts[0].split()) and "GO" in found.texts[1].split()

    @LONG
    def test_sub_words_and_tokens(self, interactive, tmp_path):
        (tmp_path / "codes").write_text("#version: 0.2\nb a</w>\nd e</w>\n")
        bpe = ("--bpe", "subword_nmt", "--bpe-codes", tmp_path / "codes", "--tokenizer", "moses")
        found = interactive("ba de\n", *bpe, "--source-lang", "de", "--target-lang", "en")
        assert found["S"][0] == ["ba de"] and len(found["D"]) == 1


@ONE_FAMILY
def test_unknown_words_of_a_text_are_replaced(tiny_text, tiny_data, tmp_path, checkpoints, family):
    """fairseq-generate needs raw text for this option. Its words need not be in the dictionary."""
    for language in ("de", "en"):
        shutil.copy(tiny_data / f"dict.{language}.txt", tmp_path)
        shutil.copy(tiny_text / f"test.{language}", tmp_path / f"test.de-en.{language}")
    (tmp_path / "test.de-en.de").write_text("unknown\n" * 20)
    flags = ("--dataset-impl", "raw", "--replace-unk", "", "--unkpen", "-99", "--max-len-b", "2", "--cpu")
    found = Output(run("fairseq-generate", tmp_path, *TASK, "--path", checkpoints[family], *flags).stdout)
    assert set(" ".join(found.texts.values()).split()) == {"unknown"}


@ONE_FAMILY
def test_validation_scores_and_a_language_model(tiny_data, checkpoints, family, tmp_path):
    flags = ("--path", checkpoints[family], *TASK, "--max-tokens", "400", "--cpu", "--log-format", "json")
    log = log_lines(run("fairseq-validate", tiny_data, *flags))
    line = next(line for line in log.splitlines() if '"valid_loss"' in line)
    assert json.loads(line[line.index("{") :])["valid_loss"]

    generated = Output(run("fairseq-generate", tiny_data, *TASK, "--path", checkpoints[family], "--cpu").stdout)
    for letter, name in (("D", "sys"), ("T", "ref")):
        rows = [generated[letter][number][0].split("\t")[-1] for number in range(20)]
        (tmp_path / name).write_text("".join(f"{row}\n" for row in rows))
    assert "BLEU4 = " in run("fairseq-score", "--sys", tmp_path / "sys", "--ref", tmp_path / "ref").stdout

    for task in (TASK, TASK[:2]):
        refused = run("fairseq-eval-lm", tiny_data, *task, "--path", checkpoints[family], "--cpu", check=False)
        assert refused.returncode and "of translation models fairseq-validate gives" in refused.stderr.splitlines()[-1]


CONFIGS = ROOT / "examples" / "configs"
TINY_SIZES = {
    "lwc": ("layers=2", "embed_dim=16", "ffn_embed_dim=16", "attention_heads=2"),
    "transformer": ("encoder_layers=1", "decoder_layers=1", "encoder_embed_dim=16", "encoder_ffn_embed_dim=16"),
    "recurrent": ("embed_dim=8", "hidden_dim=8"),
}


def hydra_train(data, out, name, *settings):
    overrides = (f"task.data={data}", "++common.cpu=true", f"checkpoint.save_dir={out}", f"hydra.run.dir={out}")
    command = ("fairseq-hydra-train", "--config-dir", CONFIGS, "--config-name", name, *settings, *overrides)
    return run(*command, "++optimization.max_update=1")


@pytest.fixture(scope="module")
def right_to_left(tiny_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("r2l")
    sizes = [f"++model.{size}" for size in TINY_SIZES["recurrent"]]
    hydra_train(tiny_data, folder, "rnnsearch", "task.reverse_target=true", *sizes)
    return folder / "checkpoint_last.pt"


SHORT_CONFIGS = ("nsc_hs",)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SHORT_CONFIGS else LONG)
        for name in sorted(path.stem for path in CONFIGS.glob("*.yaml"))
    ],
)
def test_each_preset_has_a_configuration(tiny_data, tmp_path, right_to_left, name):
    family = name.split("_")[0]
    sizes = [f"++model.{size}" for size in TINY_SIZES.get(family, TINY_SIZES["recurrent"])]
    sizes += [f"model.reverse_model={right_to_left}"] if family == "nsc" else []
    sizes += ["++model.windows='3,5'"] if "local" in name else []  # of the two layers
    hydra_train(tiny_data, tmp_path, name, *sizes)
    assert saved(tmp_path)["cfg"]["model"]["_name"] == name


def test_there_is_one_for_every_preset_of_the_papers():
    presets = {name for name, model in MODEL_REGISTRY.items() if model.__module__.startswith("lwc_fairseq")}
    without_paper = {"abd_lwc", "abd_lwc_small", "abd_lwc_base", "abd_rnmt", "rnmt"}
    base = {"lwc_transformer"}  # of its presets
    assert {path.stem for path in CONFIGS.glob("*.yaml")} == presets - without_paper - base


@LONG
def test_sweeps(tiny_data, tmp_path):
    sizes = [f"++model.{size}" for size in TINY_SIZES["recurrent"]]
    sweep = ("-m", "model.dropout=0.1,0.3", f"hydra.sweep.dir={tmp_path}")
    hydra_train(tiny_data, "checkpoints", "deepatt", *sweep, *sizes)
    found = [torch.load(path)["cfg"]["model"]["dropout"] for path in sorted(tmp_path.rglob("checkpoint_last.pt"))]
    assert found == [0.1, 0.3]
