"""Options that fairseq accepts and fails with later, or fails with although they are right."""

import functools
import os

from .errors import UserError
from .hooks import mends
from .optimizers import read_dictionary
from .scoring import read_json
from .search_options import check_eval_bleu_args
from .training_options import check_training

FILES_OF_SUBWORDS = {"subword_nmt": "bpe_codes", "sentencepiece": "sentencepiece_model"}
TASKS_OF_OTHER_MODELS = {
    "language_modeling": "trains language models",
    "multilingual_translation": "trains models with an encoder and a decoder for each language pair, such as "
    "multilingual_transformer",
}


@mends("fairseq.options", "parse_args_and_arch")
def check_options(parse_args_and_arch):
    """Refuse options that cannot work together.

    Why: fairseq fails on them later, with a traceback of another cause. Needed: always.
    """

    @functools.wraps(parse_args_and_arch)
    def parse_args_and_check(*args, **kwargs):
        parsed = parse_args_and_arch(*args, **kwargs)
        options = vars(parsed[0] if isinstance(parsed, tuple) else parsed)
        if options.get("lr_scheduler") == "polynomial_decay" and options["total_num_update"] is None:
            options["total_num_update"] = options["max_update"]  # its default, which fairseq-train loses
        check_command(options)
        return parsed

    return parse_args_and_check


def check_command(options):
    """Check the options of a command.

    Args:
        options: their values by name. Only a training has the option max_epoch.

    Raises:
        UserError: they cannot work.
    """
    check_languages(options)
    check_kind_of_model(options)
    check_subwords(options)
    check_optimizer(options)
    check_best_checkpoint(options)
    read_dictionary(options, "model_overrides")
    if "max_epoch" in options:
        check_training(options)
        if options.get("eval_bleu"):
            check_eval_bleu_args(read_json(options, "eval_bleu_args", {"beam": 4, "lenpen": 0.6}))


def check_languages(options):
    """Raises UserError if the tokenizer needs the languages, which fairseq otherwise takes from the data folder."""
    if options.get("tokenizer") == "moses" and not (options.get("source_lang") and options.get("target_lang")):
        raise UserError("--tokenizer moses has rules for each language: add the languages, -s SOURCE -t TARGET")


def check_kind_of_model(options):
    """Raises UserError if a translation model is to be trained with a task for other models."""
    from fairseq.models import ARCH_MODEL_REGISTRY, FairseqEncoderDecoderModel

    task, arch = options.get("task"), options.get("arch")
    model = ARCH_MODEL_REGISTRY.get(arch)
    if task in TASKS_OF_OTHER_MODELS and model is not None and issubclass(model, FairseqEncoderDecoderModel):
        raise UserError(
            f"--task {task} {TASKS_OF_OTHER_MODELS[task]}, but --arch {arch} is a model for one pair of languages: use "
            "a translation task, such as --task translation"
        )


def check_subwords(options):
    """Raises UserError if the file of the sub-words is not given, or does not exist."""
    name = FILES_OF_SUBWORDS.get(options.get("bpe"))
    if name is None:
        return
    flag, file = "--" + name.replace("_", "-"), options.get(name)
    if file in (None, "???"):  # which OmegaConf calls missing
        raise UserError(f"--bpe {options['bpe']} needs {flag} FILE")
    if "://" not in file and not os.path.isfile(file):
        raise UserError(f"{flag} {file}: no such file")


def check_optimizer(options):
    """Raises UserError if a training has no optimizer, before the data and the model are loaded."""
    trains = "max_epoch" in options
    if trains and not options["optimizer"]:
        raise UserError("the training has no optimizer: add one, such as --optimizer adam, and its --lr")


def check_best_checkpoint(options):
    """Raises UserError if BLEU is to choose the best checkpoint and is not computed."""
    if options.get("best_checkpoint_metric") == "bleu" and options.get("eval_bleu") is False:
        raise UserError("--best-checkpoint-metric bleu: add --eval-bleu, which computes it")


@mends(
    "fairseq.criterions.label_smoothed_cross_entropy_with_alignment",
    "LabelSmoothedCrossEntropyCriterionWithAlignment.compute_alignment_loss",
)
def name_model_without_attention(compute_alignment_loss):
    """Say that a model gives no attention in training.

    Why: fairseq fails with a traceback. Needed: always.
    """

    @functools.wraps(compute_alignment_loss)
    def compute_loss_of_attention(self, sample, net_output):
        if net_output[1]["attn"] is None or net_output[1]["attn"][0] is None:
            raise UserError(
                "--criterion label_smoothed_cross_entropy_with_alignment: this model computes no attention weights in "
                "training; choose another criterion, or a model that does, such as transformer_align or deepatt"
            )
        return compute_alignment_loss(self, sample, net_output)

    return compute_loss_of_attention


@mends("fairseq.options", "get_validation_parser")
def validate_without_task(get_validation_parser):
    """Let ``fairseq-validate`` run without ``--task``, as ``fairseq-generate`` does.

    Why: the command fails with ``KeyError: None``. It needs the option only to know the options of the task; it
    validates with the task in the checkpoint. Needed: always.
    """

    @functools.wraps(get_validation_parser)
    def get_validation_parser_of_translation(default_task=None):
        return get_validation_parser(default_task or "translation")

    return get_validation_parser_of_translation


@mends("fairseq.tasks.fairseq_task", "FairseqTask.build_generator")
def refuse_history_of_refinement(build_generator):
    """Say that ``--print-step`` and ``--retain-iter-history`` are for models that refine their translations.

    The tasks of those models have generators of their own.
    Why: ``fairseq-generate`` looks for a history that the search does not keep, and ``fairseq-interactive`` ignores the
    options. Needed: always.
    """

    @functools.wraps(build_generator)
    def build_generator_of_one_pass(self, models, args, *more, **kwargs):
        for name in ("print_step", "retain_iter_history"):
            if getattr(args, name, False):
                flag = "--" + name.replace("_", "-")
                raise UserError(
                    f"{flag} only works with models that refine their translations step by step: leave it out"
                )
        return build_generator(self, models, args, *more, **kwargs)

    return build_generator_of_one_pass


@mends("fairseq.tasks.translation_from_pretrained_bart", "TranslationFromPretrainedBARTTask.__init__")
def keep_arguments_of_bart_task(init):
    """Let ``--task translation_from_pretrained_bart`` load data.

    Why: it reads its options from ``args``, which its base class no longer sets. Without ``--langs`` it ends in a
    traceback. Needed: always.
    """

    @functools.wraps(init)
    def init_with_arguments(self, args, *dictionaries):
        if not args.langs:
            raise UserError(
                "--task translation_from_pretrained_bart: add --langs, the languages of the pretrained model, such as "
                "--langs de,en"
            )
        self.args = args
        init(self, args, *dictionaries)

    return init_with_arguments
