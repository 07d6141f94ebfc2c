"""The folder of an exported model."""

import importlib.util
import json
import logging
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerModelBase

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.files import whole_file

from ..data.reverse import is_reversed
from ..hub import Translator, load
from ..models.abd import ABDModel
from ..models.abd_lwc import ABDLWCModel, ABDLWCStack
from ..models.abd_rnmt import RNMTModel
from ..models.lwc_transformer import CoordinatedStack, LWCTransformerModel
from ..models.nsc import NSCModel
from ..models.rnnsearch import RecurrentModel
from ..models.transformer import ContextGateTransformer
from ..preparation import copy_preparation, read_preparation
from .graphs import largest_beam

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
COPIED = ("translate.py", "README.md")
"""Files of this package that go into the folder as they are."""


def write_folder(checkpoint: str, data: Path | None, folder: Path, int8: bool) -> None:
    """Write an exported model.

    Args:
        checkpoint: a file, a pack, or the address of a pack.
        data: the folder with the dictionaries and `text.yaml`; None for that of the training.
        int8: whether the weights of matrix products become 8-bit whole numbers. Products then round their other factor
            likewise.

    Raises:
        UserError: a package is missing, or the model is not one that can be exported.
        OSError: the folder cannot be written.
    """
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise UserError(f"export needs {', '.join(missing)}: pip install {' '.join(missing)}")
    model = load(checkpoint, data)
    (network,) = model.models
    write_graphs = graphs_of(network, checkpoint)
    with whole_file(folder) as making:
        making = Path(making)
        making.mkdir()
        write_text(model, making)
        for name in COPIED:
            shutil.copy(Path(__file__).with_name(name), making / name)
        logging.disable(logging.WARNING)  # those of PyTorch's exporter and of onnxruntime are not for users
        try:
            with warnings.catch_warnings(action="ignore"):
                write_graphs(network, making)
                check_scores(network, making)
                if int8:
                    quantize(making)
        finally:
            logging.disable(logging.NOTSET)


def check_scores(network: BaseFairseqModel, folder: Path) -> None:
    """Translate a source with the graphs, and compare the score of its translation with that of the model.

    Raises:
        UserError: the scores differ.
    """
    from .translate import Model

    exported = Model(folder, threads=1)
    words = range(network.encoder.dictionary.nspecial, len(network.encoder.dictionary))
    source = [*words[:7], exported.end]
    score, tokens = exported.search([source], beam=2, gnmt_length_penalty=False)[0][0]
    inputs = torch.tensor([[exported.end, *tokens[:-1]]])
    with torch.no_grad():
        out = network(torch.tensor([source]), torch.tensor([len(source)]), inputs)
        scores = network.get_normalized_probs(out, log_probs=True)[0]
    expected = float(scores[range(len(tokens)), tokens].mean())
    if not abs(score - expected) < 1e-3:
        raise UserError(
            f"the exported {type(network).__name__} does not compute what the model does: it gives a translation the "
            f"score {score:.4f} instead of {expected:.4f}; perhaps the model has options that export does not know"
        )


def quantize(folder: Path) -> None:
    """Replace the weights of matrix products by 8-bit whole numbers. Products with a vector stay as they are, because
    rounding their other factor takes longer than the product."""
    import onnx
    from onnxruntime.quantization import QuantType, quant_pre_process, quantize_dynamic

    for path in folder.glob("*.onnx"):
        quant_pre_process(path, path, skip_symbolic_shape=True)  # makes weights of what is computed from weights alone
        graph = onnx.load(path).graph
        vectors = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 1}
        kept = [node.name for node in graph.node if node.op_type == "MatMul" and not vectors.isdisjoint(node.input)]
        options = {"EnableSubgraph": True}
        quantize_dynamic(path, path, weight_type=QuantType.QInt8, nodes_to_exclude=kept, extra_options=options)


def graphs_of(network: BaseFairseqModel, checkpoint: str) -> Callable[[Any, Path], None]:
    """Return the function that writes the graphs of a model to a folder. Raises UserError if there is none."""
    if isinstance(network, LWCTransformerModel) and type(network.encoder.stack) in (CoordinatedStack, ABDLWCStack):
        from .lwc import write_graphs
    elif isinstance(network, RecurrentModel) and not isinstance(network, (NSCModel, RNMTModel)):
        from .recurrent import write_graphs
    elif (
        isinstance(network, TransformerModelBase)
        and not isinstance(network, ContextGateTransformer)
        and network.decoder.adaptive_softmax is None
        and network.decoder.project_in_dim is None
        and network.decoder.project_out_dim is None
        and all(layer.encoder_attn is not None for layer in network.decoder.layers)
    ):
        from .transformer import write_graphs
    else:
        raise UserError(
            f"{checkpoint}: a {type(network).__name__} cannot be exported: give an LWC Transformer without ablations, "
            "a recurrent model that translates alone, or a Transformer of fairseq without a context gate, an adaptive "
            "softmax, or a decoder of another width than its embeddings or without attention to the source"
        )
    return write_graphs


def write_text(model: Translator, folder: Path) -> None:
    """Write the vocabularies, the files that `text.yaml` names, and the settings of translate.py."""
    words = model.tgt_dict
    for side, dictionary in (("source", model.src_dict), ("target", words)):
        (folder / f"{side}.txt").write_text("".join(f"{word}\n" for word in dictionary.symbols), encoding="utf-8")
    max_source, max_target = model.max_positions
    settings = {
        "begin": words.bos(),
        "pad": words.pad(),
        "end": words.eos(),
        "unknown": words.unk(),
        "max_source": max_source,
        "max_target": max_target,
        "largest_beam": largest_beam(len(words)),
        "gnmt_length_penalty": bool(model.cfg.task.get("gnmt_length_penalty")),
        "right_to_left": is_reversed(model.cfg.task),
        "text": copy_preparation(read_preparation(Path(model.cfg.task.data)), folder),
    }
    (network,) = model.models
    if isinstance(network, (ABDModel, ABDLWCModel)):
        options = network.decoder.cfg if isinstance(network, ABDModel) else network.encoder.stack.cfg
        settings["longest_reverse"] = [options.max_reverse_len_a, options.max_reverse_len_b]
    (folder / "model.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
