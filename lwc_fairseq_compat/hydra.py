"""``fairseq-hydra-train``: patches that end it with one line where ``fairseq-train`` does."""

import functools
import os
import sys
from pathlib import Path

import yaml
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .errors import UserError, is_for_user
from .hooks import mends
from .options import check_command


@mends("fairseq.distributed.utils", "call_main")
def print_user_errors_under_hydra(call_main):
    """End a training under hydra with one line instead of a traceback when the user can fix the cause.

    Why: hydra catches the exceptions of the function that it runs, and prints a traceback. It runs the training in a
    new folder, where a relative path of data leads nowhere. Needed: always.
    """

    @functools.wraps(call_main)
    def call_main_or_say_why(cfg, main, **kwargs):
        if not HydraConfig.initialized():
            return call_main(cfg, main, **kwargs)
        try:
            check_data(cfg)
            check_languages(cfg)
            check_configuration(cfg)
            return call_main(cfg, main, **kwargs)
        except Exception as error:
            if is_for_user(error):
                sys.exit(f"fairseq-hydra-train: error: {error}")
            raise

    return call_main_or_say_why


def check_configuration(cfg):
    """Check a configuration as ``fairseq-train`` checks its options.

    Raises:
        UserError: the values cannot work.
    """
    from fairseq.utils import import_user_module

    import_user_module(cfg.common)  # it may register what the configuration names
    groups = {name: group for name, group in OmegaConf.to_container(cfg).items() if isinstance(group, dict)}
    options = {name: value for group in groups.values() for name, value in group.items()}
    chosen = {group: groups.get(group, {}).get("_name") for group in ("task", "optimizer", "lr_scheduler")}
    check_command({**options, **chosen, "arch": groups.get("model", {}).get("_name")})


def check_data(cfg):
    """Raises UserError if the data folder is not given, or is a relative path that hydra's folder does not contain."""
    data = OmegaConf.select(cfg, "task.data", throw_on_missing=False)
    if not data:
        raise UserError("task.data is missing: add task.data=FOLDER, with the full path")
    first = data.split(os.pathsep)[0]
    if not os.path.isabs(first) and not os.path.exists(first):
        raise UserError(f"task.data={data}: no such folder in {os.getcwd()}, where hydra runs this: give the full path")


def check_languages(cfg):
    """Raises UserError if YAML has read a language as a truth value, as it does with ``no``."""
    for key in ("source_lang", "target_lang"):
        if str(OmegaConf.select(cfg, f"task.{key}")) in ("True", "False"):
            raise UserError(f"task.{key} is a truth value for YAML: write the language in quotation marks, as 'no'")


@mends("fairseq.dataclass.initialize", "add_defaults")
def name_wrong_setting(add_defaults):
    """Say in one line which setting of a configuration is unknown, or has a value of the wrong type.

    Why: hydra prints a traceback. Needed: always.
    """

    @functools.wraps(add_defaults)
    def add_defaults_or_say_why(cfg):
        try:
            add_defaults(cfg)
        except OmegaConfBaseException as error:
            sys.exit(f"fairseq-hydra-train: error: {error.full_key}: {str(error).splitlines()[0]}")

    return add_defaults_or_say_why


@mends("fairseq.dataclass.initialize", "hydra_init")
def name_wrong_configuration(hydra_init):
    """Say that there is no configuration of the name in ``--config-name``, and which there are, or that it is not YAML.

    Why: fairseq registers its defaults under this name, so that hydra starts with them, and hydra prints a traceback
    where a key occurs twice. Needed: always.
    """

    @functools.wraps(hydra_init)
    def init_with_known_configuration(*name):
        from hydra._internal.utils import get_args

        given = get_args() if name else None  # every import of fairseq calls it without a name
        if given and given.config_dir and given.config_name:
            found = sorted(path.stem for path in Path(given.config_dir).glob("*.yaml"))
            if given.config_name.removesuffix(".yaml") not in found:
                sys.exit(
                    f"fairseq-hydra-train: error: --config-name {given.config_name}: no such configuration in "
                    f"--config-dir {given.config_dir}; it has {', '.join(found) or 'none'}"
                )
            check_yaml(Path(given.config_dir, given.config_name.removesuffix(".yaml") + ".yaml"))
        hydra_init(*name)

    return init_with_known_configuration


def check_yaml(path):
    """End the command in one line if a configuration is not YAML, or has a key twice."""
    try:
        OmegaConf.load(path)
    except yaml.MarkedYAMLError as error:
        sys.exit(f"fairseq-hydra-train: error: {path}, line {error.problem_mark.line + 1}: {error.problem}")
