"""Trees of lists, tuples and dictionaries, as the arguments and the results of operations are.

PyTorch's own functions for trees know many more kinds, for which they take most of the time of an operation here.
"""

from collections.abc import Callable, Iterator


def replace(tree, kind: type, function: Callable):
    """Replace each leaf of class `kind` by the function's result."""
    if isinstance(tree, kind):
        return function(tree)
    if isinstance(tree, list | tuple):
        return type(tree)([replace(branch, kind, function) for branch in tree])
    if isinstance(tree, dict):
        return {key: replace(branch, kind, function) for key, branch in tree.items()}
    return tree


def leaves(tree, kind: type) -> Iterator:
    """The leaves of class `kind`."""
    if isinstance(tree, kind):
        yield tree
    elif isinstance(tree, list | tuple):
        for branch in tree:
            yield from leaves(branch, kind)
    elif isinstance(tree, dict):
        yield from leaves(list(tree.values()), kind)
