"""Initialization of a model from another model's checkpoint."""

import os

from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from omegaconf import OmegaConf
from torch import Tensor, nn

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.dictionaries import OtherWords, check_words

from ..data.reverse import is_reversed

Part = tuple[nn.Module, str, tuple[str, ...]]
"""A module, the prefix of its parameters' names in the other model, and the prefixes of parameters to leave out."""


class Pretrained:
    """Loads a checkpoint's weights into parts of a new model.

    fairseq also builds the model for generation and then loads the model's own checkpoint; by that time, the other
    checkpoint may have been deleted. So the constructor only stores the error, and :meth:`require` raises it when
    training begins and the model has not loaded a checkpoint of its own.

    Args:
        option: the command-line option that names the file.
        path: the checkpoint of a right-to-left model, or None.
        task: the task of the new model.
        parts: the modules to load weights into.
        needed: whether training needs the checkpoint.
    """

    def __init__(self, option: str, path: str | None, parts: list[Part], task=None, needed: bool = False):
        self.problem = None
        if path is None:
            if needed:
                self.problem = f"{option} is missing: give the checkpoint of a trained right-to-left model"
            return
        try:
            if is_reversed(getattr(task, "cfg", None)):
                raise UserError(f"--reverse-target cannot be combined with {option}: leave --reverse-target out")
            self._load(option, path, parts, task)
        except UserError as error:
            self.problem = str(error)

    @staticmethod
    def _load(option: str, path: str, parts: list[Part], task) -> None:
        if not os.path.exists(path):
            raise UserError(f"{option} {path}: no such file")
        state = load_checkpoint_to_cpu(path)
        if not is_reversed(OmegaConf.select(OmegaConf.create(state["cfg"]), "task")):
            raise UserError(
                f"{option} {path}: this model was not trained from right to left; train an rnnsearch with --task "
                "concat_translation --reverse-target"
            )
        try:
            check_words(task, state.get("task_state") or {})
        except OtherWords as error:
            raise UserError(f"{option} {path}: {error}") from error
        for module, prefix, left_out in parts:
            load_part(module, state["model"], prefix, left_out, f"{option} {path}")
        for module, prefix, left_out in parts:
            check_part(module, state["model"], prefix, left_out, f"{option} {path}")

    def forget(self) -> None:
        """Drop the stored error, because the model has loaded its own checkpoint."""
        self.problem = None

    def require(self) -> None:
        """Raises UserError if the weights of a part are missing."""
        if self.problem:
            raise UserError(self.problem)


def load_part(module: nn.Module, weights: dict, prefix: str, left_out: tuple[str, ...], source: str) -> None:
    """Copy `weights` into all parameters of a module except those whose names begin with a prefix in `left_out`.

    Raises:
        UserError: a weight is missing or has another shape.
    """
    wanted = wanted_weights(module, left_out)
    for name, value in wanted.items():
        given = weights.get(prefix + name)
        if given is None or given.shape != value.shape:
            found = "has none" if given is None else f"has {tuple(given.shape)}"
            raise UserError(
                f"{source}: {prefix}{name} should be {tuple(value.shape)}, but the checkpoint {found}: train an "
                "rnnsearch of the same sizes and dictionaries, with --task concat_translation --reverse-target"
            )
    module.load_state_dict({name: weights[prefix + name] for name in wanted}, strict=False)


def check_part(module: nn.Module, weights: dict, prefix: str, left_out: tuple[str, ...], source: str) -> None:
    """Check that a module has the weights that were loaded into it. A shared table has those that were loaded last.

    Raises:
        UserError: weights that the module shares differ in the checkpoint.
    """
    for name, value in wanted_weights(module, left_out).items():
        if not value.equal(weights[prefix + name].to(value)):
            raise UserError(
                f"{source}: this model was trained without --share-all-embeddings: train it with the flag, or leave "
                "the flag out here"
            )


def wanted_weights(module: nn.Module, left_out: tuple[str, ...]) -> dict[str, Tensor]:
    """Return a module's weights except those whose names begin with a prefix in `left_out`."""
    return {name: value for name, value in module.state_dict().items() if not name.startswith(left_out or ("\0",))}
