import pytest
import torch

from conftest import PAD
from lwc_fairseq.modules.recurrent import SourceOrder

LEFT = torch.tensor([[PAD, PAD, 5, 6], [7, 8, 9, 2], [PAD, PAD, PAD, 3]])
RIGHT = torch.tensor([[5, 6, PAD, PAD], [7, 8, 9, 2], [3, PAD, PAD, PAD]])


@pytest.mark.parametrize("tokens", [LEFT, RIGHT], ids=["left", "right"])
def test_order(tokens):
    order = SourceOrder(tokens, PAD)
    assert order.tokens.tolist() == RIGHT.tolist()
    assert order.tokens.gather(1, order.columns).tolist() == tokens.tolist()
    assert order.padding_mask.tolist() == RIGHT.eq(PAD).tolist()
    sequence = order.tokens.T[:, :, None].float()
    assert order.last(sequence)[:, 0].tolist() == [6, 2, 3]
    backward = order.reverse(sequence)
    assert backward[:, :, 0].T.tolist() == [[6, 5, PAD, PAD], [2, 9, 8, 7], [3, PAD, PAD, PAD]]
    assert torch.equal(order.reverse(backward), sequence)
