import pytest
import torch

from lwc_fairseq.modules.kernels.tanh import tanh_, tanh_of_sum


@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float64, 1e-15), (torch.float32, 3e-7), (torch.bfloat16, 4e-3), (torch.float16, 5e-4)]
)
def test_tanh(dtype, error):
    """In place, at 0, at the ends and for small numbers, too."""
    x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([0.0, 1e-3, -1e4, 1e4])]).to(dtype)
    expected = x.double().tanh()
    assert (tanh_of_sum(torch.zeros_like(x[:1]), x).double() - expected).abs().max() < error
    assert (tanh_of_sum(x, torch.zeros_like(x)).double() - expected).abs().max() < error
    assert tanh_(x) is x and (x.double() - expected).abs().max() < error
