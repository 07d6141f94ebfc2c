"""Loading models: patches that compare a checkpoint's plugin and task with those of the command."""

import functools
import importlib.util
import os

from omegaconf import DictConfig

from .errors import UserError
from .fingerprints import OtherWords
from .hooks import mends


@mends("fairseq.checkpoint_utils", "load_model_ensemble_and_task")
def load_models_as_trained(load):
    """Say that a checkpoint needs ``--user-dir`` or another ``--task``.

    Why: without the plugin of the checkpoint, fairseq ends in a ``KeyError``. Under another task it ignores how the
    task of the checkpoint prepares sentences, and translates wrongly with status 0. Needed: always.
    """

    @functools.wraps(load)
    def load_each_model(filenames, arg_overrides=None, task=None, *args, **kwargs):
        ensemble, cfg = [], None
        for filename in filenames:
            try:
                models, cfg, task = load([filename], arg_overrides, task, *args, **kwargs)
            except OtherWords as error:
                raise UserError(f"{filename}: {error}") from error
            except UserError:
                raise
            except Exception as error:
                check_file(filename, error)
                check_plugin(filename)
                raise
            check_task(filename, cfg.task, task)
            ensemble += models
        return ensemble, cfg, task

    return load_each_model


def check_file(filename, error):
    """Check that the error of loading is not that the file is missing.

    Raises:
        UserError: the file is missing.
    """
    if isinstance(error, OSError) and not os.path.exists(filename):
        raise UserError(f"{error}: give the path of a checkpoint") from error


def check_plugin(filename):
    """Check that fairseq knows the model and the task of a checkpoint.

    Raises:
        UserError: a plugin defines them, which is not loaded.
    """
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    cfg = load_checkpoint_to_cpu(filename).get("cfg")
    if cfg is None:  # a checkpoint of fairseq 0.10 or older
        return
    model = getattr(cfg.model, "_name", None) or getattr(cfg.model, "arch", None)
    task = getattr(cfg.task, "_name", None)
    if model not in {*ARCH_MODEL_REGISTRY, *MODEL_REGISTRY}:
        raise UserError(f"{filename}: its model, {model}, is part of a plugin: {plugin_hint(cfg)}")
    if task not in TASK_REGISTRY:
        raise UserError(f"{filename}: its task, {task}, is part of a plugin: {plugin_hint(cfg)}")


def plugin_hint(cfg):
    """Return what to do about a missing plugin, which the configuration of a checkpoint names."""
    folder = cfg.common.user_dir
    if folder is None:
        return "add --user-dir with its folder"
    name = os.path.basename(os.path.normpath(folder))
    is_installed = name.isidentifier() and importlib.util.find_spec(name) is not None
    return f"add --user-dir {name if is_installed else folder}"


def check_task(filename, trained, task):
    """Check that `task` has every option that is switched on in `trained`, the task in the checkpoint.

    Raises:
        UserError: it lacks one.
    """
    used = getattr(task, "cfg", None)
    if not isinstance(trained, DictConfig) or not isinstance(used, DictConfig):
        return  # tasks without a dataclass do not tell their own options from those of the whole command
    lacking = [name for name, value in trained.items() if value is True and name not in used]
    if lacking:
        flags = " ".join("--" + name.replace("_", "-") for name in lacking)
        raise UserError(
            f"{filename}: the model was trained with --task {trained._name} {flags}, which --task {used._name} does "
            f"not know: give --task {trained._name} {flags}"
        )
