"""What `lwc-fairseq compare` uses of `unbabel-comet`, with a model that counts words: real ones must be downloaded."""

from pathlib import Path
from types import SimpleNamespace


def download_model(model):
    if model != "Unbabel/wmt22-comet-da":
        raise KeyError(f"Model '{model}' not supported by COMET.")
    return Path(__file__)


def load_from_checkpoint(checkpoint_path):
    if not Path(checkpoint_path).suffix == ".py":
        raise Exception(f"hparams.yaml file is missing from {Path(checkpoint_path).parent}!\nmore")
    return WordCounter()


class WordCounter:
    def predict(self, samples, batch_size=16, gpus=1):
        return SimpleNamespace(scores=[share(sample) for sample in samples])


def share(sample):
    """The share of words of the reference that are in the translation, if the source is there."""
    found = sum(word in sample["mt"].split() for word in sample["ref"].split())
    return found / len(sample["ref"].split()) if sample["src"].startswith("wort") else -1.0
