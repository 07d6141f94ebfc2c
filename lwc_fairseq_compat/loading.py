"""Loading models: patches that compare a checkpoint's plugin and task with those of the command, and that do without
the files from which a model once began."""

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

    cfg = load_checkpoint_to_cpu(filename).get("cfg")
    if cfg is None:  # a checkpoint of fairseq 0.10 or older
        return
    model = getattr(cfg.model, "_name", None) or getattr(cfg.model, "arch", None)
    names = {"model": model, "task": getattr(cfg.task, "_name", None)}
    try:
        check_names(names, cfg.common.user_dir)
    except UserError as error:
        raise UserError(f"{filename}: {error}") from error


HINTS = {}
"""What to do about models of plugins that no longer run, by a part of the name of the architecture.

A plugin that can read them enters its hint.
"""


def check_names(names, user_dir):
    """Check that fairseq knows what a checkpoint names.

    Args:
        names: the names of the model, the task, the criterion and so on; or None for what a checkpoint has not.
        user_dir: the ``--user-dir`` of the training, or None.

    Raises:
        UserError: a plugin defines one of them, which is not loaded.
    """
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    known = {part: entry["registry"] for part, entry in REGISTRIES.items()}
    known = {**known, "model": {**ARCH_MODEL_REGISTRY, **MODEL_REGISTRY}, "task": TASK_REGISTRY}
    for part, name in names.items():
        if name is not None and name not in known[part]:
            hint = next((hint for key, hint in HINTS.items() if key in name), plugin_hint(user_dir))
            raise UserError(f"its {part}, {name}, is part of a plugin: {hint}")


@mends("fairseq.checkpoint_utils", "convert_namespace_to_omegaconf")
def name_missing_plugin(convert):
    """Name the plugin that is missing when the options of an older checkpoint are read.

    Why: fairseq ends in a ``KeyError``. Needed: always.
    """

    @functools.wraps(convert)
    def convert_known_names(args):
        try:
            return convert(args)
        except KeyError:
            parts = ("task", "criterion", "optimizer", "lr_scheduler")
            names = {"model": getattr(args, "arch", None), **{part: getattr(args, part, None) for part in parts}}
            check_names(names, getattr(args, "user_dir", None))
            raise

    return convert_known_names


def plugin_hint(folder):
    """Return what to do about a missing plugin. The training had it in `folder`, or None."""
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


PROBLEMS = []
"""For each model that is being built, the errors of the files from which it was to begin."""


@mends("fairseq.models", "build_model")
def refuse_only_without_weights(build_model):
    """Let a model be built without the files from which it was to begin, if it then loads weights of its own.

    Such files are the embeddings in --encoder-embed-path, or the checkpoint of another model. Without weights of its
    own, the model refuses to compute.
    Why: a checkpoint holds all weights, but fairseq reads the files again to generate, to validate and to resume, and
    fails if they were moved. Needed: always.
    """

    @functools.wraps(build_model)
    def build_model_without_files(*args, **kwargs):
        PROBLEMS.append([])
        try:
            model = build_model(*args, **kwargs)
        finally:
            problems = PROBLEMS.pop()
        if problems:
            Refusal(problems[0]).of(model)
        return model

    return build_model_without_files


class Refusal:
    """Lets a model raise a `UserError` when it computes, until it loads weights."""

    def __init__(self, problem):
        self.problem = problem

    def of(self, model):
        """Set up the refusal of a model."""
        model.register_forward_pre_hook(self.refuse)
        model.register_load_state_dict_post_hook(self.forget)

    def refuse(self, *_):
        if self.problem:
            raise UserError(self.problem)

    def forget(self, *_):
        self.problem = None


def note_problem(file, error):
    """Note why the model that is being built cannot begin from a file. Raise the error if there is no such model."""
    if not PROBLEMS:
        raise error
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or "it is empty"
    PROBLEMS[-1].append(f"{file}: {reason}")


@mends("fairseq.utils", "parse_embedding")
def read_embeddings_if_there_are_any(parse_embedding):
    """Build a model without its file of embeddings, for :func:`refuse_only_without_weights`. Needed: always."""

    @functools.wraps(parse_embedding)
    def parse_embedding_or_note_why(embed_path):
        try:
            return parse_embedding(embed_path)
        except (OSError, ValueError, StopIteration) as error:
            note_problem(f"{embed_path} (--encoder-embed-path or --decoder-embed-path)", error)
            return {}

    return parse_embedding_or_note_why


@mends("fairseq.utils", "load_embedding")
def copy_embeddings_that_fit(load_embedding):
    """Build a model although its file of embeddings has another size, for :func:`refuse_only_without_weights`.

    Needed: always.
    """

    @functools.wraps(load_embedding)
    def load_embedding_or_note_why(embed_dict, vocab, embedding):
        try:
            return load_embedding(embed_dict, vocab, embedding)
        except RuntimeError as error:
            note_problem("--encoder-embed-path or --decoder-embed-path", error)
            return embedding

    return load_embedding_or_note_why


@mends("fairseq.checkpoint_utils", "load_pretrained_component_from_model")
def load_component_if_it_is_there(load_component):
    """Build a model without the checkpoint of its encoder or decoder, for :func:`refuse_only_without_weights`.

    Needed: always.
    """

    @functools.wraps(load_component)
    def load_component_or_note_why(component, checkpoint, *args, **kwargs):
        try:
            return load_component(component, checkpoint, *args, **kwargs)
        except (OSError, UserError) as error:
            note_problem(checkpoint, error)
            return component

    return load_component_or_note_why


@mends("fairseq.models.transformer_from_pretrained_xlm", "upgrade_state_dict_with_xlm_weights")
def load_xlm_if_it_is_there(upgrade_state_dict):
    """Build a model without its XLM checkpoint, for :func:`refuse_only_without_weights`. Needed: always."""

    @functools.wraps(upgrade_state_dict)
    def upgrade_state_dict_or_note_why(state_dict, pretrained_xlm_checkpoint):
        try:
            return upgrade_state_dict(state_dict, pretrained_xlm_checkpoint)
        except (OSError, UserError) as error:
            note_problem(f"--pretrained-xlm-checkpoint {pretrained_xlm_checkpoint}", error)
            return state_dict

    return upgrade_state_dict_or_note_why
