import pytest
import torch

from conftest import make_lwc, random_batch

ABLATIONS = {
    "full": {},
    "unshared": {"unshared_weights": True},
    "separate": {"separate_attention": True},
    "both": {"unshared_weights": True, "separate_attention": True},
    "no-side": {"no_side_embedding": True},
    "no-position": {"no_position_embedding": True},
}
LAYER = {  # shapes of a layer's weights with d = 16 and a feed-forward network of 24
    **{"attention.qkv.weight": (48, 16), "attention.qkv.bias": (48,)},
    **{"attention.out.weight": (16, 16), "attention.out.bias": (16,)},
    **{"attention_norm.weight": (16,), "attention_norm.bias": (16,), "ffn_norm.weight": (16,), "ffn_norm.bias": (16,)},
    **{"fc1.weight": (24, 16), "fc1.bias": (24,), "fc2.weight": (16, 24), "fc2.bias": (16,)},
}


@pytest.mark.parametrize("norm", ["before", "after", "deepnorm"])
@pytest.mark.parametrize("ablation", ABLATIONS)
def test_names_and_shapes_in_checkpoints(ablation, norm):
    """Those of the first release, whose checkpoints must load."""
    options = ABLATIONS[ablation]
    model = make_lwc(layers=4, layer_norm=norm, **options)
    expected = {"embedding.tokens.weight": (17, 16)}
    if "no_side_embedding" not in options:
        expected["embedding.sides.weight"] = (2, 16)
    lists = {"layers": 2, "source_layers": 2} if "unshared_weights" in options else {"layers": 4}
    for name, length in lists.items():
        for i in range(length):
            expected |= {f"{name}.{i}.{weight}": shape for weight, shape in LAYER.items()}
    if norm == "before":
        expected |= {"norm.weight": (16,), "norm.bias": (16,)}
    found = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    assert found == {f"encoder.stack.{name}": shape for name, shape in expected.items()}


@pytest.mark.parametrize("ablation", ["separate", "both"])
def test_separate_attention_has_a_softmax_for_each_side(ablation):
    model = make_lwc(layers=4, **ABLATIONS[ablation])
    attention = model.attention(*random_batch([(4, 6), (2, 6)]))
    depth = 2 if ablation == "both" else 4
    assert [layer.shape for layer in attention.source] == [(2, 2, 6, 4)] * depth
    assert [layer.shape for layer in attention.target] == [(2, 2, 6, 6)] * depth
    for weights in (*attention.source, *attention.target):
        assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 6, dtype=weights.dtype))
    assert not any(layer.triu(1).any() for layer in attention.target)
