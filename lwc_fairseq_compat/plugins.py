"""The lookup of plugins by ``--user-dir``."""

import argparse
import functools
import importlib.util
import os
import sys

from .errors import UserError
from .hooks import mends


@mends("fairseq.utils", "import_user_module")
def import_plugins_by_name(import_user_module):
    """Let ``--user-dir NAME`` load the installed package NAME if there is no such folder, accept any path to a package
    that is already imported, and load several packages, ``--user-dir ONE:OTHER``.

    Why: fairseq looks beside its own folder, which does not find an editable installation, takes another spelling of
    the path of an imported package for a different package of the same name, and knows only one package. Needed:
    always.
    """

    @functools.wraps(import_user_module)
    def import_user_module_by_name(common):
        user_dir = getattr(common, "user_dir", None)
        for path in [] if user_dir is None else user_dir.split(os.pathsep):
            try:
                import_user_module(argparse.Namespace(user_dir=plugin_folder(path)))
            except FileNotFoundError as error:
                raise UserError(
                    f"--user-dir {path}: there is no such folder, and no package of this name is installed"
                ) from error

    return import_user_module_by_name


def plugin_folder(user_dir):
    """Return the folder of the package that ``--user-dir`` names.

    Raises:
        UserError: the path is a file, or a folder that contains packages, such as a repository, and is none itself.
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
        UserError: it is none, but contains packages.
    """

    def inside(name, *parts):
        return any(os.path.exists(os.path.join(folder, name, part)) for part in parts)

    packages = [name for name in sorted(os.listdir(folder)) if inside(name, "__init__.py")]
    if not packages or inside("", "__init__.py", "models", "tasks"):
        return
    plugins = [name for name in packages if inside(name, "models", "tasks")] or packages
    given = " or ".join(os.path.join(folder, name) for name in plugins)
    raise UserError(f"--user-dir {folder} holds the package, but is not the package: give {given}")
