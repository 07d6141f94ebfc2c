"""The commands: plugins, progress messages, and ``fairseq-hydra-train``, which prints the one-line errors of
``fairseq-train``."""

import copy
import importlib.util
import logging
import os
import sys
import time
from pathlib import Path

import yaml
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .errors import UserError, is_for_user
from .hooks import replaces
from .options import check_command

QUIET_S = 10.0
"""Seconds until :func:`log_slow_batches` first logs. Before each further line, it waits twice as long."""


@replaces("fairseq.utils", "import_user_module")
def import_plugins_by_name(import_user_module, common):
    """Let ``--user-dir`` accept an installed package, several packages, and any path to an imported package.

    ``--user-dir NAME`` loads the installed package NAME if there is no folder NAME. ``--user-dir ONE:OTHER`` loads two
    packages. If a package lacks a requirement, the message names it.

    Why: fairseq looks beside its own folder, where an editable installation is not. It takes another spelling of the
    path of an imported package for a different package of the same name. It knows only one package. Needed: always.
    """
    user_dir = getattr(common, "user_dir", None)
    if user_dir is None:
        return import_user_module(common)
    common = copy.copy(common)
    for path in user_dir.split(os.pathsep):
        common.user_dir = plugin_folder(path)
        try:
            import_user_module(common)
        except FileNotFoundError as error:
            raise UserError(
                f"--user-dir {path}: there is no such folder, and no package of this name is installed"
            ) from error
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] == os.path.basename(os.path.abspath(common.user_dir)):
                raise  # a fault of the package itself
            raise UserError(f"--user-dir {path}: {error}; install what this package needs") from error


def plugin_folder(user_dir):
    """Return the folder of the package that ``--user-dir`` names.

    Raises:
        UserError: the path is a file, or a folder that is not a package but contains packages, such as a repository.
    """
    name = os.path.basename(os.path.normpath(user_dir))
    if os.path.isfile(user_dir):
        raise UserError(f"--user-dir {user_dir} is a file: give the folder of a package")
    if os.path.exists(user_dir):
        check_package(user_dir)
        imported = getattr(sys.modules.get(name), "__path__", [])
        return next((folder for folder in imported if os.path.samefile(folder, user_dir)), user_dir)
    spec = importlib.util.find_spec(name) if name == user_dir and name.isidentifier() else None
    return next(iter((spec and spec.submodule_search_locations) or []), user_dir)


def check_package(folder):
    """Check that a folder is a plugin: a package, or a folder with the ``models`` or ``tasks`` of one.

    Raises:
        UserError: the folder is not a plugin, but contains packages.
    """

    def contains(path, *names):
        return any((path / name).exists() for name in names)

    packages = [path for path in sorted(Path(folder).iterdir()) if contains(path, "__init__.py")]
    if packages and not contains(Path(folder), "__init__.py", "models", "tasks"):
        plugins = [path for path in packages if contains(path, "models", "tasks")] or packages
        given = " or ".join(os.path.join(folder, path.name) for path in plugins)
        raise UserError(f"--user-dir {folder} holds the package, but is not the package: give {given}")


@replaces("fairseq.logging.progress_bar", "SimpleProgressBar.__iter__")
def log_slow_batches(iterate, self):
    """Log the number of the batch after `QUIET_S`, and then at intervals that double.

    Why: without a terminal, fairseq logs only every 100 batches. This takes minutes on a CPU. Needed: always.
    """
    due, quiet = time.monotonic() + QUIET_S, QUIET_S
    for batch in iterate(self):
        yield batch
        if time.monotonic() >= due:
            logging.getLogger("fairseq.logging.progress_bar").info(
                f"{self.prefix or 'batch'}:  {self.i + 1:5d} / {self.size:d}"
            )
            quiet *= 2
            due = time.monotonic() + quiet


@replaces("fairseq.distributed.utils", "call_main")
def print_user_errors_under_hydra(call_main, cfg, main, **kwargs):
    """End a training under hydra with one line instead of a traceback when the user can fix the cause.

    Why: hydra catches the exceptions of the function that it runs, and prints a traceback. It runs the training in a
    new folder, where a relative path of data leads nowhere. Needed: always.
    """
    try:
        if HydraConfig.initialized():
            check_configuration(cfg)
        return call_main(cfg, main, **kwargs)
    except Exception as error:
        if HydraConfig.initialized() and is_for_user(error):
            sys.exit(f"fairseq-hydra-train: error: {error}")
        raise


def check_configuration(cfg):
    """Check a configuration as ``fairseq-train`` checks its options.

    Raises:
        UserError: the values cannot work.
    """
    from fairseq.utils import import_user_module

    check_data_and_languages(cfg)
    import_user_module(cfg.common)  # it may register what the configuration names
    groups = {name: group for name, group in OmegaConf.to_container(cfg).items() if isinstance(group, dict)}
    options = {name: value for group in groups.values() for name, value in group.items()}
    chosen = {group: groups.get(group, {}).get("_name") for group in ("task", "optimizer", "lr_scheduler")}
    check_command({**options, **chosen, "arch": groups.get("model", {}).get("_name")})


def check_data_and_languages(cfg):
    """Raises UserError if the data folder is not given, or is a relative path that hydra's folder does not contain, or
    if YAML has read a language as a truth value, as it does with ``no``."""
    from fairseq.utils import split_paths

    data = OmegaConf.select(cfg, "task.data", throw_on_missing=False)
    # `in cfg.task` would also want a value
    if not data and cfg.task is not None and "data" not in cfg.task.keys():  # noqa: SIM118
        return  # a task without a folder of data, such as dummy_lm
    if not data:
        raise UserError("task.data is missing: add task.data=FOLDER, with the full path")
    first = split_paths(data)[0]
    if "://" not in first and not os.path.isabs(first) and not os.path.exists(first):
        raise UserError(f"task.data={data}: no such folder in {os.getcwd()}, where hydra runs this: give the full path")
    for key in ("task.source_lang", "task.target_lang"):
        if str(OmegaConf.select(cfg, key)) in ("True", "False"):
            raise UserError(f"{key} is a truth value for YAML: write the language in quotation marks, as 'no'")


@replaces("fairseq.dataclass.initialize", "add_defaults")
def name_wrong_setting(add_defaults, cfg):
    """Say in one line which setting of a configuration is unknown, or has a value of the wrong type.

    Why: hydra prints a traceback. Needed: always.
    """
    try:
        add_defaults(cfg)
    except OmegaConfBaseException as error:
        sys.exit(f"fairseq-hydra-train: error: {error.full_key}: {str(error).splitlines()[0]}")


@replaces("fairseq.dataclass.initialize", "hydra_init")
def name_wrong_configuration(hydra_init, *name):
    """Say that ``--config-name`` names no configuration, and which there are, or that its file is not valid YAML.

    Why: fairseq registers its defaults under this name, so hydra starts with them if the file is missing. hydra prints
    a traceback if a key occurs twice. Needed: always.
    """
    from hydra._internal.utils import get_args

    given = get_args() if name else None  # every import of fairseq calls it without a name
    if given and given.config_dir and given.config_name:
        path = Path(given.config_dir, given.config_name.removesuffix(".yaml") + ".yaml")
        names = sorted(file.stem for file in path.parent.glob("*.yaml"))
        if path.stem not in names:
            raise UserError(
                f"--config-name {given.config_name}: no such configuration in --config-dir {given.config_dir}; it has "
                f"{', '.join(names) or 'none'}"
            )
        try:
            OmegaConf.load(path)
        except yaml.MarkedYAMLError as error:
            raise UserError(f"{path}, line {error.problem_mark.line + 1}: {error.problem}") from error
    hydra_init(*name)
