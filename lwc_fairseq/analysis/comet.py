"""COMET, a learned metric, where the package `unbabel-comet` is installed."""

from importlib.metadata import version
from pathlib import Path
from statistics import mean

import torch

from lwc_fairseq_compat import UserError

from .compare import Comparison, Sentences

MODEL = "Unbabel/wmt22-comet-da"
INSTALL = "pip install '.[comet]' && pip install --no-deps unbabel-comet"
"""The extra `comet` of setup.py lists what `unbabel-comet` needs, because its own requirements exclude NumPy 2."""


class Comet:
    """A COMET model, which scores translations by their sources and first references.

    Args:
        model: the name of a model, which COMET downloads, or the path of a model's checkpoint.

    Raises:
        UserError: COMET is not installed.
    """

    def __init__(self, model: str = MODEL):
        try:
            import comet

            release = version("unbabel-comet")
        except ImportError as error:  # there is no such module, or it is of another distribution
            raise UserError(f"--comet: {error}; install COMET with: {INSTALL}") from error
        self.package = comet
        self.name = model
        self.signature = f"{model}, unbabel-comet {release}, first reference"

    def add_to(self, found: Comparison, sentences: Sentences) -> None:
        """Add the scores and the signature to a comparison. Arguments and errors are those of :meth:`scores`."""
        for name, score in self.scores(sentences).items():
            found.scores[name]["COMET"] = score
        found.signatures["COMET"] = self.signature

    def scores(self, sentences: Sentences) -> dict[str, float]:
        """Return the mean score of each system; higher is better.

        Args:
            sentences: the translations, with a source.

        Raises:
            UserError: the model cannot be downloaded or loaded.
        """
        model = self._load()
        lines = list(zip(sentences.source, sentences.references[0], strict=True))
        samples = [
            {"src": source, "ref": reference, "mt": hypothesis}
            for hypotheses in sentences.systems.values()
            for (source, reference), hypothesis in zip(lines, hypotheses, strict=True)
        ]
        found = model.predict(samples, gpus=int(torch.cuda.is_available())).scores
        first = range(0, len(found), len(lines))
        means = [round(mean(found[start : start + len(lines)]), 4) for start in first]
        return dict(zip(sentences.systems, means, strict=True))

    def _load(self):
        try:
            path = self.name if Path(self.name).exists() else self.package.download_model(self.name)
        except KeyError as error:
            raise UserError(
                f"--comet-model {self.name}: there is no such file, and COMET cannot download a model of that name "
                "here: download it where there is a network, and give the path of its checkpoints/model.ckpt"
            ) from error
        try:
            return self.package.load_from_checkpoint(str(path))
        except Exception as error:  # COMET itself raises Exception, and what it is built on, errors of many kinds
            reason, *_ = str(error).split("\n")
            raise UserError(f"--comet-model {self.name}: COMET cannot load it: {reason}") from error
