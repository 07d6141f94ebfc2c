"""Copies and pickles of loaded models, as worker processes need them."""

import copyreg
import functools

from .hooks import mends


@mends("fairseq.models.fairseq_model", "BaseFairseqModel.make_generation_fast_")
def keep_fast_models_copyable(make_generation_fast_):
    """Let models be copied and pickled after ``make_generation_fast_()``.

    Why: fairseq gives them a local function as ``train``. Needed: always.
    """

    @functools.wraps(make_generation_fast_)
    def make_generation_fast_and_copyable(self, **kwargs):
        make_generation_fast_(self, **kwargs)
        self.train = refuse_training

    return make_generation_fast_and_copyable


def refuse_training(mode=True):
    """Stand for the method ``train`` of a model that can only translate."""
    if mode:
        raise RuntimeError("cannot train after make_generation_fast")


@mends("fairseq.tasks.fairseq_task", "StatefulContainer.__getattr__")
def keep_tasks_copyable(get_state):
    """Let tasks be copied and pickled.

    Why: a copy asks for methods before it has its state, and fairseq looks for the state without end. Needed: always.
    """

    @functools.wraps(get_state)
    def get_state_if_there_is_one(self, name):
        if "_state" not in self.__dict__:
            raise AttributeError(name)
        return get_state(self, name)

    return get_state_if_there_is_one


@mends("fairseq.dataclass.constants")
def keep_choices_copyable(module):
    """Let options with a choice of values be pickled.

    Why: fairseq makes a class for each choice, which pickle does not find by its name. Mends: ``ChoiceEnum``. Needed:
    always.
    """

    def reduce_choices(choices):
        if getattr(module, choices.__name__, None) is choices:
            return choices.__name__
        return module.ChoiceEnum, ([choice.value for choice in choices],)

    copyreg.pickle(module.StrEnumMeta, reduce_choices)
