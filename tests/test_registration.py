"""Models are registered with fairseq as soon as both packages are imported, whatever is imported first."""

import sys

import pytest

from conftest import LONG, run
from test_architecture import FILES, GRAPH, folder_of

FIRST_IMPORTS = {
    "the package": ["import lwc_fairseq; lwc_fairseq.models.abd.ABDModel"],
    "fairseq": ["import fairseq, lwc_fairseq"],
    "files of the package": [
        *("import lwc_fairseq.models.interface", "import lwc_fairseq.modules.reverse_search"),
        *("import lwc_fairseq.data.reverse", "import lwc_fairseq.search.beam_search"),
        *("import lwc_fairseq.tasks.concat_translation", "from lwc_fairseq import load"),
    ],
}
CHECK = """
import os, sys
import torch
for code in sys.argv[1:]:
    if os.fork() == 0:
        assert not {"fairseq", "lwc_fairseq"} & sys.modules.keys()
        exec(code)
        from fairseq.criterions import CRITERION_REGISTRY
        from fairseq.models import ARCH_MODEL_REGISTRY
        from fairseq.optim import OPTIMIZER_REGISTRY
        from fairseq.tasks import TASK_REGISTRY
        missing = {"lwc_transformer", "deepatt", "abd", "nsc_rt", "rnnsearch"} - ARCH_MODEL_REGISTRY.keys()
        missing |= {"bidirectional_cross_entropy", "chunked_cross_entropy"} - CRITERION_REGISTRY.keys()
        missing |= {"fused_adam", "rmsprop"} - OPTIMIZER_REGISTRY.keys()
        missing |= {"concat_translation"} - TASK_REGISTRY.keys()
        assert not missing, (code, missing)
        break
    _, status = os.wait()
    assert status == 0, code
"""


@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=() if first == "the package" else LONG) for first in FIRST_IMPORTS]
)
def test_whatever_is_imported_first(first):
    run(sys.executable, "-c", CHECK, *FIRST_IMPORTS[first])


def test_importing_the_package_alone_is_quick():
    script = "import sys, lwc_fairseq; assert not {'torch', 'fairseq', 'numpy'} & sys.modules.keys()"
    run(sys.executable, "-c", script)


def test_a_name_that_does_not_exist():
    import lwc_fairseq

    assert not hasattr(lwc_fairseq, "no_such_name")
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        from lwc_fairseq import no_such_name  # noqa: F401


def test_each_folder_imports_fairseq_before_a_single_one_of_its_files():
    """Otherwise a file that is imported first would still be running when registration imports names from it."""
    registered, new = set(), GRAPH["lwc_fairseq"] - {"lwc_fairseq.hub"}
    while new:
        registered |= new
        new = {name for other in new for name in GRAPH[other]} - registered
    named = {name for other in registered for name in GRAPH[other]}
    folders = {folder for name in named if (folder := folder_of(name))}
    assert {"models", "modules", "data", "search"} <= folders
    for folder in folders:
        assert FILES[f"lwc_fairseq.{folder}"].read_text().count("import fairseq  # noqa") == 1, folder
    beside = [FILES[name] for name in named if not folder_of(name) and not name.startswith("lwc_fairseq_compat")]
    assert not [path.name for path in beside if "import fairseq" in path.read_text()]
