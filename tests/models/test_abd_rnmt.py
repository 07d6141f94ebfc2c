from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from torch.nn import functional as F

from conftest import (
    BIDIRECTIONAL,
    EOS,
    LONG,
    PAD,
    TASK,
    TINY_TRAINING,
    hypotheses,
    make_dictionary,
    make_rnmt,
    random_batch,
    run,
    without_padding,
)
from lwc_fairseq.criterions.bidirectional_cross_entropy import (
    BidirectionalCrossEntropy,
    BidirectionalCrossEntropyConfig,
)
from lwc_fairseq.models import ABDRNMTConfig, ABDRNMTModel
from properties import (
    future_target_tokens_change_nothing_earlier,
    generated_scores_are_those_of_teacher_forcing,
    sentence_alone_equals_the_same_in_a_batch,
    steps_equal_the_full_pass,
)
from reference_abd_rnmt import backward_pass, forward_pass, greedy_reverse, loss

LENGTHS = [(4, 3), (2, 6), (7, 1), (1, 2)]
HEADS = 2
MODES = pytest.mark.parametrize("mode", ["train", "eval"])
REVERSE = pytest.mark.parametrize("reverse", ["greedy", "reference"])
VARIANTS = pytest.mark.parametrize("variant", ["rnmt", "abd_rnmt"])


def weights(model):
    return model.state_dict(keep_vars=True)


def batch(seed=0, **settings):
    return random_batch(LENGTHS, types=15, seed=seed, **settings)


def pairs(src, prev):
    """Source and target input of each sentence."""
    return zip(map(without_padding, src), map(without_padding, prev), strict=True)


def make_initial(**settings):
    """An `abd_rnmt` with its own initial weights."""
    task = SimpleNamespace(source_dictionary=make_dictionary(50), target_dictionary=make_dictionary(50))
    return ABDRNMTModel.build_model(ABDRNMTConfig(**settings), task)


def end_earlier(model):
    """Make some searches end before their limit."""
    with torch.no_grad():
        model.decoder.output.bias[EOS] += 0.4


class TestAgainstTheReference:
    """The float64 reference of reference_abd_rnmt.py, written from the equations with loops."""

    @MODES
    def test_rnmt(self, mode):
        model = make_rnmt("rnmt")
        getattr(model, mode)()
        src, prev = batch()
        logits, extra = model(src, None, prev)
        for i, (source, given) in enumerate(pairs(src, prev)):
            expected, found = forward_pass(weights(model), source, None, given, HEADS)
            assert torch.allclose(logits[i, : len(given)], expected, rtol=0, atol=1e-10)
            for ours, (theirs,) in zip(extra["attentions"], found, strict=mode == "eval"):
                assert torch.allclose(ours[i, : len(given)][:, src[i].ne(PAD)], theirs, rtol=0, atol=1e-10)

    @REVERSE
    @MODES
    def test_both_decoders(self, reverse, mode):
        """In evaluation the reverse context is greedy, whatever it is in training."""
        model = make_rnmt(reverse_context=reverse)
        getattr(model, mode)()
        src, prev = batch()
        logits, extra = model(src, None, prev, backward=True)
        for i, (source, given) in enumerate(pairs(src, prev)):
            length = len(given)
            backwards, states = backward_pass(weights(model), source, [EOS, *given[:0:-1]], HEADS)
            assert torch.allclose(extra["backward"][0][i, :length], backwards, rtol=0, atol=1e-10)
            if reverse == "greedy" or mode == "eval":
                search = greedy_reverse(weights(model), source, 2 * len(source), HEADS)
                states = backward_pass(weights(model), source, search, HEADS)[1]
            expected, _ = forward_pass(weights(model), source, states, given, HEADS)
            assert torch.allclose(logits[i, :length], expected, rtol=0, atol=1e-10)

    def test_attention(self):
        model = make_rnmt()
        src, prev = batch()
        attention, translations = model.attention(src, prev), model.reverse_translations(src)
        for i, (source, given) in enumerate(pairs(src, prev)):
            search = [EOS, *without_padding(translations[i])[:-1]]
            states = backward_pass(weights(model), source, search, HEADS)[1]
            _, found = forward_pass(weights(model), source, states, given, HEADS)
            for layer, (to_source, to_reverse) in enumerate(found):
                ours = attention.source[layer][i, 0, : len(given)][:, src[i].ne(PAD)]
                assert torch.allclose(ours, to_source, rtol=0, atol=1e-10)
                ours = attention.reverse[layer][i, 0, : len(given)]
                assert torch.allclose(ours[:, : len(states)], to_reverse, rtol=0, atol=1e-10)
                assert not ours[:, len(states) :].any()

    @REVERSE
    def test_loss_and_every_gradient(self, reverse):
        model = make_rnmt(reverse_context=reverse).train()
        src, prev = batch()
        target = torch.full_like(prev, PAD)
        for row, given in zip(target, map(without_padding, prev), strict=True):
            row[: len(given)] = torch.tensor([*given[1:], EOS])
        sample = {
            "net_input": {"src_tokens": src, "src_lengths": None, "prev_output_tokens": prev},
            "target": target,
            "ntokens": int(target.ne(PAD).sum()),
        }
        config = BidirectionalCrossEntropyConfig(forward_weight=0.6, label_smoothing=0.1, sentence_avg=False)
        task = SimpleNamespace(target_dictionary=make_dictionary(17))
        ours, _, _ = BidirectionalCrossEntropy.build_criterion(config, task)(model, sample)
        theirs = sum(
            loss(weights(model), source, [*given[1:], EOS], 0.6, reverse, 2 * len(source), 0.1, HEADS)
            for source, given in pairs(src, prev)
        )
        assert ours.item() == pytest.approx(theirs.item(), abs=1e-9)
        names, parameters = zip(*model.named_parameters(), strict=True)
        for name, mine, reference in zip(
            names, torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True
        ):
            assert torch.allclose(mine, reference, rtol=0, atol=1e-9), name
            assert mine.abs().sum() > 0, name

    def test_greedy_search(self):
        ended = []
        for seed in range(4):
            model = make_rnmt(seed=seed)
            end_earlier(model)
            src, _ = batch(seed)
            for row, source in zip(model.reverse_translations(src), map(without_padding, src), strict=True):
                expected = greedy_reverse(weights(model), source, 2 * len(source), HEADS)
                assert [EOS, *without_padding(row)[:-1]] == expected
                ended.append(without_padding(row)[-1] == EOS)
        assert True in ended and False in ended


class TestTraining:
    def test_the_search_has_neither_dropout_nor_gradients(self):
        model = make_rnmt(dropout=0.5, activation_dropout=0.5, attention_dropout=0.5)
        source = model.encoder(batch()[0])  # without dropout
        start = model.decoder.begin_backward(source)
        training, evaluation = (model.train(mode).decoder.search(source, start) for mode in (True, False))
        assert torch.equal(training[0], evaluation[0])
        assert torch.equal(training[1].states, evaluation[1].states)
        assert not training[1].states.requires_grad

    def test_training_goes_on_with_dropout_after_the_search(self):
        model = make_rnmt(dropout=0.5).train()
        src, prev = batch()
        assert not torch.equal(*(model(src, None, prev)[0] for _ in range(2)))
        assert all(module.training for module in model.modules())

    @pytest.mark.parametrize("option", ["dropout", "activation_dropout", "attention_dropout"])
    def test_every_dropout_is_in_training_alone(self, option):
        model, without = (make_rnmt("rnmt", **{option: p}) for p in (0.5, 0.0))
        src, prev = batch()
        expected = without(src, None, prev)[0]
        assert torch.equal(model(src, None, prev)[0], expected)
        assert not torch.allclose(model.train()(src, None, prev)[0], expected)

    def test_gradients_flow_through_the_states_of_the_search(self):
        model = make_rnmt().train()
        src, prev = batch()
        model(src, None, prev)[0].sum().backward()
        assert all(p.grad.any() for p in model.decoder.backward_decoder.layers[0].recurrent.parameters())

    @REVERSE
    @VARIANTS
    def test_padding_never_matters(self, variant, reverse):
        """Neither its side nor its width, in the source; nor its width in the target."""
        settings = {"reverse_context": reverse} if variant == "abd_rnmt" else {}
        model = make_rnmt(variant, **settings).train()
        src, prev = batch()
        expected = model(src, None, prev)[0]
        right, _ = batch(left_pad_source=False)
        wider = F.pad(src, (2, 1), value=PAD), F.pad(prev, (0, 3), value=PAD)
        for one, other in ((right, prev), wider):
            logits = model(one, None, other)[0][:, : prev.size(1)]
            for row, known, given in zip(logits, expected, map(without_padding, prev), strict=True):
                assert torch.allclose(row[: len(given)], known[: len(given)], rtol=0, atol=1e-12)

    @pytest.mark.parametrize(("width", "limit"), [(128, 0.16), (512, 0.08)])
    def test_initial_weights(self, width, limit):
        """Matrices are uniform in the same range at the default width as in the authors' program; biases are 0."""
        model = make_initial(embed_dim=width, decoder_layers=1)
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                assert 0.98 * limit < weight.max() <= limit and -limit <= weight.min() < -0.98 * limit, name
            else:
                assert torch.equal(weight, torch.full_like(weight, "norm" in name and name.endswith("weight"))), name
        assert not model.decoder.embedding.weight[PAD].any()

    def test_one_table(self):
        model = make_rnmt(types=(17, 17), share_all_embeddings=True)
        large = [
            name for name, parameter in model.named_parameters() if parameter.size(0) == 17 and parameter.dim() == 2
        ]
        assert large == ["encoder.embedding.weight"]
        with pytest.raises(ValueError, match="--share-all-embeddings needs one dictionary, but there are two"):
            make_rnmt(share_all_embeddings=True)


class TestDecoding:
    @VARIANTS
    def test_step_by_step_with_reordering_equals_the_full_pass(self, variant):
        def check(logits, extra, full_extra, sources):
            assert torch.allclose(extra["attn"][0][:, -1], full_extra["attn"][0][:, -1], rtol=0, atol=1e-12)
            assert torch.equal(extra["attn"][0].gt(0).any(1), sources.ne(PAD))

        steps_equal_the_full_pass(make_rnmt(variant), batch()[0], steps=8, check=check)

    @VARIANTS
    def test_sentence_alone_equals_the_same_in_a_batch(self, variant):
        sentence_alone_equals_the_same_in_a_batch(make_rnmt(variant), batch()[0], types=17)

    @VARIANTS
    def test_generated_scores_are_those_of_teacher_forcing(self, variant):
        generated_scores_are_those_of_teacher_forcing(make_rnmt(variant), batch()[0], types=17)

    @VARIANTS
    def test_future_target_tokens_change_nothing_earlier(self, variant):
        src, prev = random_batch([(4, 5), (6, 5)], types=15)
        future_target_tokens_change_nothing_earlier(make_rnmt(variant), src, prev, words=13)

    def test_attention_only_where_it_is_needed(self):
        model = make_rnmt()
        model.make_generation_fast_(need_attn=False)
        assert model(batch()[0], None, batch()[1])[1]["attn"] is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embed_dim": 0}, "--embed-dim 0: must be at least 1"),
        ({"decoder_layers": 0}, "--decoder-layers 0: must be at least 1"),
        ({"attention_heads": 3}, "--embed-dim 8 is not divisible by --attention-heads 3: choose"),
        ({"attention_dropout": 1.0}, r"--attention-dropout 1.0: must be in \[0, 1\)"),
        ({"max_reverse_len_b": -1}, "--max-reverse-len-a 2.0 --max-reverse-len-b -1: must be numbers from 0"),
    ],
)
def test_invalid_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        make_rnmt(**settings)


@REVERSE
def test_training_learns_in_both_directions(reverse):
    """The target is the source: after some updates, both losses are a small fraction of the first ones."""
    sizes = {"embed_dim": 32, "decoder_layers": 1, "share_all_embeddings": True}
    model = make_rnmt(types=(12, 12), dtype=torch.float32, reverse_context=reverse, **sizes).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for seed in range(100):
        words = torch.randint(4, 12, (32, 4), generator=torch.Generator().manual_seed(seed))
        end = torch.full((32, 1), EOS)
        target = torch.cat([words, end], dim=1)
        logits, extra = model(target, None, torch.cat([end, words], dim=1), backward=True)
        backwards = torch.cat([words.flip(1), end], dim=1)
        both = (logits, target), (extra["backward"][0], backwards)
        pair = [F.cross_entropy(output.flatten(0, 1), words.flatten()) for output, words in both]
        losses.append([loss.item() for loss in pair])
        optimizer.zero_grad()
        sum(pair).backward()
        optimizer.step()
    for first, last in zip(losses[0], losses[-1], strict=True):
        assert last < 0.2 * first


@pytest.mark.parametrize("variant", ["rnmt", pytest.param("abd_rnmt", marks=LONG)])
def test_the_commands(variant, tiny_data, tmp_path):
    """Training in half precision; generation, whose two searches find the same."""
    sizes = ("--embed-dim", "16", "--decoder-layers", "2", "--attention-heads", "2", "--share-all-embeddings")
    train = (*TASK, *TINY_TRAINING, "--arch", variant, *sizes, *(BIDIRECTIONAL if variant == "abd_rnmt" else ()))
    run("fairseq-train", tiny_data, *train, "--max-update", "60", "--bf16", "--save-dir", tmp_path)
    generate = ("fairseq-generate", tiny_data, *TASK, "--path", tmp_path / "checkpoint_last.pt", "--cpu")
    generate += ("--gen-subset", "test", "--max-len-b", "10")
    own, stock = (run(*generate, *flags).stdout for flags in ((), ("--stock-search", "--print-alignment", "hard")))
    assert [text for text, _ in hypotheses(own)] == [text for text, _ in hypotheses(stock)]
    assert any(text for text, _ in hypotheses(own))
    assert stock.count("\nA-") == len(hypotheses(stock)) == 20
    if variant == "abd_rnmt":
        lines = run(*generate, "--print-reverse").stdout.splitlines()
        assert sum(line.startswith("R-") for line in lines) == 20


@pytest.mark.parametrize(("variant", "expected"), [("rnmt", 54.4e6), ("abd_rnmt", 78.6e6)])
def test_parameters(variant, expected):
    """With 30,000 types on each side; docs/models.md has these numbers."""
    task = SimpleNamespace(source_dictionary=make_dictionary(30_000), target_dictionary=make_dictionary(30_000))
    with torch.device("meta"):
        model = ARCH_MODEL_REGISTRY[variant].build_model(MODEL_DATACLASS_REGISTRY[variant](), task)
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(expected, abs=0.05e6)
