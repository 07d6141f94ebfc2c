"""The criterion has the loss, the gradients and the logs of fairseq's criterions."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.distributed import DistributedTimeoutWrapper, ModuleProxyWrapper
from torch.nn.parallel import DistributedDataParallel

from conftest import EOS, PAD, make_abd, make_deepatt, make_dictionary, make_lwc, make_transformer, random_batch
from lwc_fairseq.criterions.bidirectional_cross_entropy import (
    BidirectionalCrossEntropy,
    BidirectionalCrossEntropyConfig,
)
from lwc_fairseq.criterions.chunked_cross_entropy import ChunkedCrossEntropyConfig, ChunkedCrossEntropyCriterion
from lwc_fairseq.data.packing import pack
from lwc_fairseq.models.interface import unwrap

TASK = SimpleNamespace(target_dictionary=make_dictionary(17))
MODELS = {
    "lwc": make_lwc,
    "lwc, unshared": lambda: make_lwc(layers=4, unshared_weights=True),
    "deepatt": lambda: make_deepatt(types=(17, 17)),
    "mheadnmt": lambda: make_deepatt("mheadnmt", types=(17, 17)),
    "abd": lambda: make_abd(types=(17, 17)),
    "transformer of this plugin": lambda: make_transformer().double(),
    "transformer of fairseq": lambda: make_transformer(arch="transformer").double(),
}


def sample():
    """Padded on either side."""
    src, prev = random_batch([(4, 3), (2, 6), (7, 1)])
    ends = torch.full_like(prev[:, :1], PAD)
    target = torch.cat([prev[:, 1:], ends], dim=1)
    target[torch.arange(3), prev.ne(PAD).sum(1) - 1] = EOS
    net_input = {"src_tokens": src, "src_lengths": src.ne(PAD).sum(1), "prev_output_tokens": prev}
    return {"net_input": net_input, "target": target, "ntokens": int(target.ne(PAD).sum())}


def ours(smoothing, sentence_avg):
    cfg = ChunkedCrossEntropyConfig(label_smoothing=smoothing, sentence_avg=sentence_avg)
    return ChunkedCrossEntropyCriterion(TASK, cfg)


@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("name", MODELS)
def test_equals_fairseqs_criterions(name, smoothing, sentence_avg):
    model = MODELS[name]().train()
    stock = (
        LabelSmoothedCrossEntropyCriterion(TASK, sentence_avg, smoothing)
        if smoothing
        else CrossEntropyCriterion(TASK, sentence_avg)
    )
    (loss, size, logged), (stock_loss, stock_size, stock_logged) = (
        criterion(model, sample()) for criterion in (ours(smoothing, sentence_avg), stock)
    )
    assert size == stock_size
    assert loss.item() == pytest.approx(stock_loss.item(), rel=1e-6)  # theirs is in single precision
    expected_log = {"nll_loss": stock_loss, **stock_logged}  # without smoothing fairseq leaves it out
    assert logged.keys() == expected_log.keys()
    assert all(float(logged[key]) == pytest.approx(float(expected_log[key]), rel=1e-6) for key in logged)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    expected = torch.autograd.grad(stock_loss, parameters, allow_unused=True)
    for mine, its in zip(found, expected, strict=True):
        assert (mine is None) == (its is None)
        assert mine is None or torch.allclose(mine, its, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_without_reduction_there_is_a_loss_for_each_token(smoothing):
    model, batch = make_lwc(), sample()
    loss, _, _ = ours(smoothing, False)(model, batch, reduce=False)
    expected, _, _ = LabelSmoothedCrossEntropyCriterion(TASK, False, smoothing)(model, batch, reduce=False)
    assert torch.allclose(loss, expected.flatten(), rtol=1e-6)


def test_without_reduction_a_word_has_the_loss_of_both_directions():
    model, batch = make_abd(types=(17, 17)), sample()
    loss, whole = (
        BidirectionalCrossEntropy(TASK, BidirectionalCrossEntropyConfig(forward_weight=weight))(model, batch, reduce)[0]
        for weight, reduce in ((0.0, False), (0.0, True))
    )
    assert loss.sum().item() == pytest.approx(whole.item(), rel=1e-6)
    # The backward decoder predicts the last word first, from the source alone.
    _, extra = model(**batch["net_input"], backward=True)
    first = extra["backward"][0].log_softmax(-1)[0, 0]
    last_word = batch["target"][0, 1]
    assert loss.view_as(batch["target"])[0, 1].item() == pytest.approx(-first[last_word].item(), rel=1e-6)


@pytest.mark.parametrize("name", ["lwc", "deepatt"])
def test_a_target_that_is_edited(name):
    """A criterion or task may leave out words from the loss, without a change of ntokens."""
    model, batch = MODELS[name]().train(), sample()
    inputs = batch["net_input"]
    if name == "lwc":
        inputs["packing"] = vars(pack(inputs["src_tokens"], inputs["prev_output_tokens"], PAD))
    batch["target"][1, 2] = PAD
    loss, _, _ = ours(0.1, False)(model, batch)
    expected, _, _ = LabelSmoothedCrossEntropyCriterion(TASK, False, 0.1)(model, batch)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("lwc", "encoder.stack.embedding.tokens.weight"),
        ("deepatt", "decoder.output.weight"),
        ("abd", "decoder.output.weight"),
    ],
)
def test_distributed_training_that_looks_for_unused_parameters(name, output, tmp_path):
    """It must find the output layer, whose weights are used outside of the model, in what the model returns."""
    torch.distributed.init_process_group("gloo", f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        model = MODELS[name]().train()
        wrapped = ModuleProxyWrapper(DistributedDataParallel(model, find_unused_parameters=True))
        ours(0.1, False)(wrapped, sample())[0].backward()
        assert model.get_parameter(output).grad is not None
        with_heartbeat = DistributedTimeoutWrapper(wrapped, timeout=0)
        assert unwrap(with_heartbeat) is unwrap(wrapped) is unwrap(model) is model
        ours(0.1, False)(with_heartbeat, sample())[0].backward()
        wrapped = ModuleProxyWrapper(DistributedDataParallel(make_transformer(), find_unused_parameters=True))
        ours(0.1, False)(wrapped, sample())[0].backward()
        untied = make_transformer(arch="transformer")
        wrapped = ModuleProxyWrapper(DistributedDataParallel(untied, find_unused_parameters=True))
        for refused in (wrapped, DistributedTimeoutWrapper(wrapped, timeout=0)):
            with pytest.raises(ValueError, match="add --share-decoder-input-output-embed, or use label_smoothed_cross"):
                ours(0.1, False)(refused, sample())
    finally:
        torch.distributed.destroy_process_group()


def test_other_models_are_refused():
    without_features = make_transformer(arch="transformer")
    without_features.decoder.output_projection = torch.nn.Identity()
    for model in (torch.nn.Linear(1, 1), without_features, make_transformer(arch="transformer_align")):
        with pytest.raises(ValueError, match=r"no features .* use label_smoothed_cross_entropy or cross_entropy"):
            ours(0.1, False)(model, sample())
    with pytest.raises(ValueError, match=r"--label-smoothing 1\.0: must be in \[0, 1\)"):
        ours(1.0, False)
