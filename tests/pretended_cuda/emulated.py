"""Operations that have a kernel on CUDA and none on a CPU."""

from . import cells, flash
from .softmax import backward_of, forward_of

EMULATED = {
    "torch_attn::_varlen_attn": flash.flash_forward,
    "torch_attn::_varlen_attn_backward": flash.flash_backward,
    "aten::_softmax": forward_of("_softmax"),
    "aten::_log_softmax": forward_of("_log_softmax"),
    "aten::_softmax_backward_data": backward_of("_softmax"),
    "aten::_log_softmax_backward_data": backward_of("_log_softmax"),
    "aten::_thnn_fused_lstm_cell": cells.lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": cells.lstm_cell_backward,
    "aten::_thnn_fused_gru_cell": cells.gru_cell,
    "aten::_thnn_fused_gru_cell_backward": cells.gru_cell_backward,
}
"""The function on a CPU for each operation, by the full name of the operation."""
