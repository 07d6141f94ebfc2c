"""Loading trained models in Python: `load(checkpoint, data).translate(["…"])`."""

import os
from collections.abc import Sequence
from pathlib import Path

from fairseq.hub_utils import GeneratorHubInterface, from_pretrained

from lwc_fairseq_compat import UserError

Source = str | os.PathLike


def load(
    checkpoint: Source | Sequence[Source],
    data: Source,
    *,
    bpe_codes: Source | None = None,
    tokenizer: str | None = None,
    **settings,
) -> GeneratorHubInterface:
    """Load a model for translation, or an ensemble of models with the same dictionaries.

        load("checkpoint_best.pt", "data-bin", bpe_codes="codes").translate(["Ein Satz ."], beam=6)

    Args:
        checkpoint: the checkpoint file or, for an ensemble, several files in one folder.
        data: the folder that fairseq-preprocess wrote.
        bpe_codes: the codes of subword-nmt. Without them, sentences and translations consist of subwords.
        tokenizer: the name of a fairseq tokenizer, such as "moses".
        settings: options of the task or the model that override those in the checkpoint, such as
            gnmt_length_penalty=True.

    Returns:
        fairseq's interface: `translate`, `generate` (scores, attention), `encode` and `decode`. It is a torch module,
        so `.cuda()` and `.half()` work.

    Raises:
        UserError: a file does not exist, or the ensemble's files are not in one folder.
    """
    paths = [Path(one) for one in ([checkpoint] if isinstance(checkpoint, Source) else checkpoint)]
    for path in [*paths, Path(data), *([Path(bpe_codes)] if bpe_codes else [])]:
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
    if len({path.resolve().parent for path in paths}) > 1:
        raise UserError(f"{', '.join(map(str, paths))}: an ensemble's files must be in one folder")
    if bpe_codes:
        settings |= {"bpe": "subword_nmt", "bpe_codes": str(bpe_codes)}
    if tokenizer:
        settings["tokenizer"] = tokenizer
    names = os.pathsep.join(path.name for path in paths)
    loaded = from_pretrained(str(paths[0].resolve().parent), names, str(Path(data).resolve()), **settings)
    return GeneratorHubInterface(loaded["args"], loaded["task"], loaded["models"])
