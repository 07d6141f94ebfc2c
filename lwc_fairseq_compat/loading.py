"""Loading models.

Some patches compare a checkpoint's plugin and task with those of the command. Others load a model without the files
that initialized it, or let models, tasks and options be copied to other processes.
"""

import contextlib
import copyreg
import importlib.util
import os
from contextvars import ContextVar

from omegaconf import DictConfig

from .dictionaries import OtherWords
from .errors import UserError, flag
from .hooks import mends, replaces

IS_LOADING: ContextVar[bool] = ContextVar("IS_LOADING", default=False)
"""Whether a model is built whose weights a checkpoint will replace, so that it need not draw initial ones."""


@replaces("fairseq.checkpoint_utils", "load_model_ensemble_and_task")
def load_models_as_trained(load, filenames, arg_overrides=None, task=None, *args, **kwargs):
    """Say that a checkpoint is missing, or needs ``--user-dir`` or another ``--task``.

    Why: without the plugin of the checkpoint, fairseq ends in a ``KeyError``. Under another task it ignores how the
    task of the checkpoint prepares sentences, and translates wrongly with status 0. Needed: always.
    """
    ensemble, cfg = [], None
    for filename in filenames:
        loading = IS_LOADING.set(True)
        try:
            models, cfg, task = load([filename], arg_overrides, task, *args, **kwargs)
        except OtherWords as error:
            raise UserError(f"{filename}: {error}") from error
        except UserError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and not os.path.exists(filename):
                raise UserError(f"{error}: give the path of a checkpoint") from error
            check_plugin(filename)
            raise
        finally:
            IS_LOADING.reset(loading)
        check_task(filename, cfg.task, task)
        ensemble += models
    return ensemble, cfg, task


def check_plugin(filename):
    """Raises UserError if the model or the task of a checkpoint is part of a plugin that is not loaded."""
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    cfg = load_checkpoint_to_cpu(filename)["cfg"]
    model = getattr(cfg.model, "_name", None) or getattr(cfg.model, "arch", None)
    try:
        check_names({"model": model, "task": getattr(cfg.task, "_name", None)}, cfg.common.user_dir)
    except UserError as error:
        raise UserError(f"{filename}: {error}") from error


@replaces("fairseq.checkpoint_utils", "convert_namespace_to_omegaconf")
def name_missing_plugin(convert, args):
    """Name the plugin that is missing when the options of an older checkpoint are read.

    Why: fairseq ends in a ``KeyError``. Needed: always.
    """
    try:
        return convert(args)
    except KeyError:
        parts = ("task", "criterion", "optimizer", "lr_scheduler")
        names = {"model": getattr(args, "arch", None), **{part: getattr(args, part, None) for part in parts}}
        check_names(names, getattr(args, "user_dir", None))
        raise


HINTS: dict[str, str] = {}
"""What to do about a model whose plugin no longer runs, by a part of the architecture's name. Plugins add entries."""


def check_names(names, user_dir):
    """Raises UserError if a part of a training, such as its model or its task, is from a plugin that is not loaded.

    Args:
        names: the name of each part; None for a part that the checkpoint does not name.
        user_dir: the ``--user-dir`` of the training, or None.
    """
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    known = {part: entry["registry"] for part, entry in REGISTRIES.items()}
    known |= {"model": {**ARCH_MODEL_REGISTRY, **MODEL_REGISTRY}, "task": TASK_REGISTRY}
    for part, name in names.items():
        if name is not None and name not in known[part]:
            hint = next((hint for key, hint in HINTS.items() if key in name), plugin_hint(user_dir))
            raise UserError(f"its {part}, {name}, is part of a plugin: {hint}")


def plugin_hint(folder):
    """Return what to do about a missing plugin. `folder` is the ``--user-dir`` of the training, or None."""
    if folder is None:
        return "add --user-dir with its folder"
    name = os.path.basename(os.path.normpath(folder))
    is_installed = name.isidentifier() and importlib.util.find_spec(name) is not None
    return f"add --user-dir {name if is_installed else folder}"


def check_task(filename, trained, task):
    """Raises UserError if `task` lacks an option that is on in `trained`, the task's configuration in a checkpoint."""
    used = getattr(task, "cfg", None)
    if not isinstance(trained, DictConfig) or not isinstance(used, DictConfig):
        return  # tasks without a dataclass do not tell their own options from those of the whole command
    lacking = [name for name, value in trained.items() if value is True and name not in used]
    if lacking:
        flags = " ".join(map(flag, lacking))
        raise UserError(
            f"{filename}: the model was trained with --task {trained._name} {flags}, which --task {used._name} does "
            f"not know: give --task {trained._name} {flags}"
        )


PROBLEMS: list[list[str]] = []
"""For each model that is being built, the errors of the files that should initialize it."""


@replaces("fairseq.models", "build_model")
def refuse_only_without_weights(build_model, *args, **kwargs):
    """Build a model without the files that should initialize it. It refuses to compute until it loads its weights.

    Such files are the embeddings in --encoder-embed-path, or the checkpoint of another model. A plugin's models read
    theirs within :func:`noted`.
    Why: a checkpoint holds all weights, but fairseq reads the files again to generate, to validate and to resume, and
    fails if they were moved. Needed: always, with the four patches below.
    """
    PROBLEMS.append([])
    try:
        model = build_model(*args, **kwargs)
    finally:
        problems = PROBLEMS.pop()
    if problems:
        model.missing_file = problems[0]
        model.register_forward_pre_hook(refuse_to_compute)
        model.register_load_state_dict_post_hook(forget_file)
    return model


def refuse_to_compute(model, _):
    if model.missing_file:
        raise UserError(model.missing_file)


def forget_file(model, _):
    model.missing_file = None


@contextlib.contextmanager
def noted(file, *errors):
    """Note why a file cannot initialize the model that is being built. If no model is being built, raise the error.

    A UserError names the file itself.
    """
    try:
        yield
    except errors as error:
        if not PROBLEMS:
            raise
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or "it is empty"
        PROBLEMS[-1].append(reason if isinstance(error, UserError) else f"{file}: {reason}")


@replaces("fairseq.utils", "parse_embedding")
def read_embeddings_if_there_are_any(parse_embedding, embed_path):
    with noted(f"{embed_path} (--encoder-embed-path or --decoder-embed-path)", OSError, ValueError, StopIteration):
        return parse_embedding(embed_path)
    return {}


@replaces("fairseq.utils", "load_embedding")
def copy_embeddings_that_fit(load_embedding, embed_dict, vocab, embedding):
    with noted("--encoder-embed-path or --decoder-embed-path", RuntimeError):
        return load_embedding(embed_dict, vocab, embedding)
    return embedding


@replaces("fairseq.checkpoint_utils", "load_pretrained_component_from_model")
def load_component_if_it_is_there(load_component, component, checkpoint, *args, **kwargs):
    with noted(checkpoint, OSError, UserError):
        return load_component(component, checkpoint, *args, **kwargs)
    return component


@replaces("fairseq.models.transformer_from_pretrained_xlm", "upgrade_state_dict_with_xlm_weights")
def load_xlm_if_it_is_there(upgrade_state_dict, state_dict, pretrained_xlm_checkpoint):
    with noted(f"--pretrained-xlm-checkpoint {pretrained_xlm_checkpoint}", OSError, UserError):
        return upgrade_state_dict(state_dict, pretrained_xlm_checkpoint)
    return state_dict


@replaces("fairseq.models.fairseq_model", "BaseFairseqModel.make_generation_fast_")
def keep_fast_models_copyable(make_generation_fast_, self, **kwargs):
    """Let models be copied and pickled after ``make_generation_fast_()``.

    Why: fairseq gives them a local function as ``train``. Needed: always.
    """
    make_generation_fast_(self, **kwargs)
    self.train = refuse_training


def refuse_training(mode=True):
    """Stand for the method ``train`` of a model that can only translate."""
    if mode:
        raise RuntimeError("cannot train after make_generation_fast")


@replaces("fairseq.tasks.fairseq_task", "StatefulContainer.__getattr__")
def keep_tasks_copyable(get_state, self, name):
    """Let tasks be copied and pickled.

    Why: copy and pickle look up methods before they restore the state. fairseq's lookup then recurses without end.
    Needed: always.
    """
    if "_state" not in self.__dict__:
        raise AttributeError(name)
    return get_state(self, name)


@mends("fairseq.dataclass.constants")
def keep_choices_copyable(module):
    """Let options with a choice of values be pickled.

    Why: fairseq makes a class for each choice, which pickle does not find by its name. Needed: always.
    """

    def reduce_choices(choices):
        if getattr(module, choices.__name__, None) is choices:
            return choices.__name__
        return module.ChoiceEnum, ([choice.value for choice in choices],)

    copyreg.pickle(module.StrEnumMeta, reduce_choices)
