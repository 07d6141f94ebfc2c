"""The folder of an exported model."""

import importlib.util
import json
import logging
import shutil
import warnings
from dataclasses import asdict
from pathlib import Path

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.files import whole_file

from ..hub import Translator, load
from ..models.lwc_transformer import CoordinatedStack, LWCTransformerModel
from ..preparation import read_preparation

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
COPIED = ("translate.py", "README.md")
"""Files of this package that go into the folder as they are."""


def write_folder(checkpoint: Path, data: Path | None, folder: Path, int8: bool) -> None:
    """Write an exported model.

    Args:
        data: the folder with the dictionaries and `text.yaml`; None for that of the training.
        int8: whether the weights of matrix products become 8-bit whole numbers. Products then round their other factor
            likewise.

    Raises:
        UserError: a package is missing, or the model is not one that can be exported.
    """
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise UserError(f"export needs {', '.join(missing)}: pip install {' '.join(missing)}")
    model = load(checkpoint, data)
    (network,) = model.models
    if not isinstance(network, LWCTransformerModel) or type(network.encoder.stack) is not CoordinatedStack:
        raise UserError(f"{checkpoint}: only the layer-wise coordinated Transformer without ablations can be exported")
    from .lwc import write_graphs

    with whole_file(folder) as making:
        making = Path(making)
        making.mkdir()
        logging.disable(logging.WARNING)  # those of PyTorch's exporter and of onnxruntime are not for users
        try:
            with warnings.catch_warnings(action="ignore"):
                write_graphs(network, str(making), model.tgt_dict.eos())
                if int8:
                    from onnxruntime.quantization import QuantType, quantize_dynamic

                    for path in making.glob("*.onnx"):
                        quantize_dynamic(path, path, weight_type=QuantType.QInt8)
        finally:
            logging.disable(logging.NOTSET)
        write_text(model, making)
        for name in COPIED:
            shutil.copy(Path(__file__).with_name(name), making / name)


def write_text(model: Translator, folder: Path) -> None:
    """Write the vocabulary, the files that `text.yaml` names, and the settings of translate.py."""
    words = model.tgt_dict
    (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in words.symbols), encoding="utf-8")
    preparation = read_preparation(Path(model.cfg.task.data))
    text = (
        {} if preparation is None else {key: value for key, value in asdict(preparation).items() if value is not None}
    )
    for key in ("codes", "case_model"):
        if key in text:
            shutil.copy(text[key], folder / key)
            text[key] = key
    max_source, max_target = model.max_positions
    settings = {"pad": words.pad(), "end": words.eos(), "unknown": words.unk(), "text": text}
    settings |= {"max_source": max_source, "max_target": max_target}
    settings["gnmt_length_penalty"] = bool(model.cfg.task.get("gnmt_length_penalty"))
    (folder / "model.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
