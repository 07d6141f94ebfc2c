"""Register patches of fairseq beside their definitions, and apply them when fairseq is imported.

Most patches are functions that replace one of fairseq's. They receive the original, and then the arguments of a call:

    @replaces("fairseq.tasks.fairseq_task", "FairseqTask.filter_indices_by_size")
    def name_invalid_size(filter_indices_by_size, self, *args, **kwargs):
        ...

A patch that needs more than that is a decorator of an attribute, or changes a whole module (:func:`mends`).
"""

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_patches_before_fairseq: list[Callable] = []
_calls_after_fairseq: list[Callable] = []
_patches_after_module: dict[str, list[tuple[str, str | None, Callable]]] = {}
"""For each module of fairseq: the file that defines a patch, what the patch replaces, and the patch."""


def before_fairseq(patch: Callable[[], None]) -> Callable[[], None]:
    """Call `patch` once, before any module of fairseq runs."""
    _patches_before_fairseq.append(patch)
    return patch


def after_fairseq(register: Callable[[], None]) -> Callable[[], None]:
    """Call `register` as soon as fairseq is imported, or now if it already is. So a plugin can be imported without
    fairseq, and registers itself when fairseq is there."""
    if "fairseq" in sys.modules:
        register()
    else:
        _calls_after_fairseq.append(register)
    return register


def mends(module: str, attribute: str | None = None) -> Callable[[Callable], Callable]:
    """Apply the decorated patch right after `module` has run.

    Args:
        module: the full name of a module of fairseq, or of a command in fairseq_cli. If Python
            began to import a command before this package, only patches without an attribute apply to the command.
        attribute: what to replace, such as "function" or "Class.method". The patch is called with the current value and
            returns the new value. Without an attribute, the patch is called with the module.
    """

    def register(patch: Callable) -> Callable:
        _patches_after_module.setdefault(module, []).append((patch.__module__, attribute, patch))
        return patch

    return register


def replaces(module: str, attribute: str) -> Callable[[Callable], Callable]:
    """Call the decorated function instead of a function or method of fairseq.

    Args:
        module, attribute: as in :func:`mends`. The decorated function receives the original, and then the arguments of
            the call. The replacement has the decorated function as its attribute `patch`.
    """

    def register(patch: Callable) -> Callable:
        @functools.wraps(patch)
        def replacement_of(original: Callable) -> Callable:
            @functools.wraps(original)
            def replacement(*args, **kwargs):
                return patch(original, *args, **kwargs)

            replacement.__dict__["patch"] = patch
            return replacement

        mends(module, attribute)(replacement_of)
        return patch

    return register


class Finder:
    """Finds fairseq's modules as Python does, and applies the patches to each module after it has run.

    Args:
        files: the modules that define patches. Patches are applied in the order of these files and, within a file, from
            top to bottom, no matter which file is imported first.
    """

    def __init__(self, files: Sequence[str]):
        self.files = list(files)
        self.is_prepared = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in ("fairseq", "fairseq_cli"):
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((spec for finder in others if (spec := finder.find_spec(name, path, target))), None)
        if spec is None or spec.loader is None:  # fairseq is not installed, or this is a folder of that name
            return None
        run = spec.loader.exec_module

        def run_and_patch(module: ModuleType) -> None:
            self._prepare()
            run(module)
            self._patch(module)
            if name == "fairseq":
                for register in _calls_after_fairseq:
                    register()

        spec.loader.exec_module = run_and_patch  # type: ignore[method-assign]
        return spec

    def _prepare(self) -> None:
        if self.is_prepared:
            return
        for file in self.files:
            importlib.import_module(file)
        for patch in _patches_before_fairseq:
            patch()
        self.is_prepared = True
        for name in _patches_after_module:
            if name.startswith("fairseq_cli.") and name in sys.modules:  # the command, which has no functions yet
                self._patch(sys.modules[name], names_only=True)

    def _patch(self, module: ModuleType, names_only: bool = False) -> None:
        patches = _patches_after_module.get(module.__name__, [])
        for _, attribute, patch in sorted(patches, key=lambda entry: self.files.index(entry[0])):
            if attribute is None:
                patch(module)
            elif not names_only:
                *outer, name = attribute.split(".")
                owner = functools.reduce(getattr, outer, module)
                setattr(owner, name, patch(getattr(owner, name)))
