"""`lwc-fairseq import`: the public checkpoints of Fonollosa, Casas, Costa-jussà, *Joint Source-Target Self Attention
with Locality Constraints*, 2019.

Their plugin, jarfo/joint, calls the model `joint_attention`. It computes what `lwc_transformer --layer-norm after
--positions fairseq` computes, but its checkpoints have other names, and the embeddings of each side. The command writes
a checkpoint of `lwc_transformer`. So every other command meets one form of checkpoint, and no code for the old form.
"""

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path

import torch
from fairseq import options
from fairseq.checkpoint_utils import torch_persistent_save
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import setup_task
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..files import make_place
from .average import read

NAMES = {
    "encoder.embed_tokens.weight": "embedding.tokens.weight",
    "decoder.layer_norm.weight": "norm.weight",
    "decoder.layer_norm.bias": "norm.bias",
}
NAMES_IN_LAYER = {
    "self_attn.in_proj_weight": "attention.qkv.weight",
    "self_attn.in_proj_bias": "attention.qkv.bias",
    "self_attn.out_proj.weight": "attention.out.weight",
    "self_attn.out_proj.bias": "attention.out.bias",
    "self_attn_layer_norm.weight": "attention_norm.weight",
    "self_attn_layer_norm.bias": "attention_norm.bias",
    "fc1.weight": "fc1.weight",
    "fc1.bias": "fc1.bias",
    "fc2.weight": "fc2.weight",
    "fc2.bias": "fc2.bias",
    "final_layer_norm.weight": "ffn_norm.weight",
    "final_layer_norm.bias": "ffn_norm.bias",
}
COMPUTED = (
    "encoder.version",
    "decoder.version",
    "encoder.embed_positions._float_tensor",
    "decoder.embed_positions._float_tensor",
)
"""Buffers of fairseq without weights."""


def add_import(commands) -> None:
    command = commands.add_parser(
        "import",
        help="read a checkpoint of the public plugin jarfo/joint",
        description="Write a checkpoint of lwc_transformer from one of `joint_attention`, the model of the public "
        "plugin jarfo/joint (Fonollosa et al., 2019). Translations are the same.",
    )
    command.add_argument("old", type=Path, metavar="OLD", help="a checkpoint of that plugin")
    command.add_argument("new", type=Path, metavar="NEW", help="the file to write")
    command.add_argument(
        "--data",
        metavar="DIR",
        help="the folder with the dictionaries of the model, which later commands then take by default",
    )
    command.set_defaults(call=import_command)


def import_command(args: argparse.Namespace) -> int:
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    make_place(args.new, "NEW")
    state = read(args.old)
    try:
        new, flags = convert(state, args.data)
    except UserError as error:
        raise UserError(f"{args.old}: {error}") from error
    torch_persistent_save(new, str(args.new))
    model = new["cfg"]["model"]
    windows = f", windows of {model['windows']}" if model["windows"] else ""
    print(f"wrote {args.new}: lwc_transformer with {model['layers']} layers of width {model['embed_dim']}{windows}")
    print(f"To train it further: fairseq-train … {' '.join(flags)} --finetune-from-model {args.new}")
    return 0


def convert(state: Mapping, data: str | None) -> tuple[dict, list[str]]:
    """Return the checkpoint of `lwc_transformer` for one of `joint_attention`, and the options of that model.

    Args:
        state: what the checkpoint of `joint_attention` holds.
        data: the folder with its dictionaries, or None for the one that the checkpoint names.

    Raises:
        UserError: it is no such checkpoint, or `lwc_transformer` has not what it has, or the dictionaries are others.
    """
    args = vars(state.get("args") or argparse.Namespace())
    arch = args.get("arch")
    if not str(arch).removeprefix("local_").startswith("joint_attention"):
        raise UserError(f"its architecture is {arch}, not joint_attention of jarfo/joint: there is nothing to import")
    for name in ("encoder_learned_pos", "decoder_learned_pos"):
        if args.get(name):
            raise UserError(f"it was trained with --{name.replace('_', '-')}, but lwc_transformer has sinusoids alone")
    weights = convert_weights(state["model"])
    trained_in = args.get("data", "")
    folder = data or (trained_in if isinstance(trained_in, str) else trained_in[0])
    source, target = args.get("source_lang"), args.get("target_lang")
    flags = ["--arch", "lwc_transformer", *model_flags(args, weights)]
    task = [folder, "--user-dir", "lwc_fairseq", "--task", "concat_translation", "-s", source, "-t", target]
    loss = ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", str(args.get("label_smoothing", 0.0))]
    command = [*task, *flags, *loss, "--optimizer", "adam", "--lr", "0"]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), command))
    updates = state["optimizer_history"][-1]["num_updates"]
    history = {"criterion_name": "LabelSmoothedCrossEntropyCriterion", "optimizer_name": "FairseqAdam"}
    checkpoint = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
        "model": {f"encoder.stack.{name}": value for name, value in weights.items()},
        "criterion": None,
        "optimizer_history": [{**history, "lr_scheduler_state": {}, "num_updates": updates}],
        "task_state": {} if data is None else state_of_task(cfg, types=len(weights["embedding.tokens.weight"])),
        "extra_state": {},
        "last_optimizer_state": None,
    }
    return checkpoint, flags


def state_of_task(cfg: DictConfig, types: int) -> dict:
    """Return what a checkpoint of the task holds: the words of its dictionaries.

    Raises:
        UserError: a dictionary is missing or has another number of types.
    """
    task = setup_task(cfg.task)
    for dictionary in (task.source_dictionary, task.target_dictionary):
        if len(dictionary) != types:
            size = f"{dictionary.file} has {len(dictionary):,}"
            raise UserError(f"it has {types:,} types, but {size}: give the dictionaries of its training")
    return task.state_dict()


def model_flags(args: Mapping, weights: Mapping[str, Tensor]) -> list[str]:
    """Return the options of `lwc_transformer`. Sizes are those of the weights."""
    _, embed_dim = weights["embedding.tokens.weight"].shape
    layers = sum(name.endswith(".fc1.bias") for name in weights)
    flags = ["--layers", layers, "--embed-dim", embed_dim, "--ffn-embed-dim", len(weights["layers.0.fc1.bias"])]
    flags += ["--attention-heads", args.get("decoder_attention_heads", 8), "--positions", "fairseq"]
    flags += ["--layer-norm", "before" if "norm.weight" in weights else "after", "--residual-gain", "1"]
    flags += ["--dropout", args.get("dropout", 0.1), "--attention-dropout", args.get("attention_dropout", 0.0)]
    flags += ["--activation-dropout", args.get("relu_dropout", 0.0)]
    flags += ["--max-source-positions", args.get("max_source_positions", 1024)]
    flags += ["--max-target-positions", args.get("max_target_positions", 1024)]
    if widths := args.get("kernel_size_list"):
        flags += ["--windows", ",".join(map(str, widths))]
    if "embedding.sides.weight" not in weights:
        flags += ["--no-side-embedding"]
    if args.get("no_token_positional_embeddings"):
        flags += ["--no-position-embedding"]
    return [str(flag) for flag in flags]


def convert_weights(old: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a :class:`CoordinatedStack`, in single precision, by the names of its parameters.

    Raises:
        UserError: `lwc_transformer` has no place for one of them, or one is missing.
    """
    old = {name: value.float() for name, value in old.items() if name not in COMPUTED}
    table = old.get("encoder.embed_tokens.weight")
    if table is None:
        raise UserError("it has no encoder.embed_tokens.weight, and so is not a checkpoint of joint_attention")
    for name in ("decoder.embed_tokens.weight", "decoder.embed_out"):
        if name in old and not torch.equal(old.pop(name), table):
            raise UserError(f"{name} is not its encoder.embed_tokens.weight, but lwc_transformer has one table for all")
    new = {}
    if "encoder.embed_language" in old:
        vectors = old.pop("encoder.embed_language"), old.pop("decoder.embed_language")
        new["embedding.sides.weight"] = torch.stack(vectors)
    for name, value in old.items():
        layer, _, rest = name.removeprefix("decoder.layers.").partition(".")
        place = NAMES.get(name) or (f"layers.{layer}.{NAMES_IN_LAYER[rest]}" if rest in NAMES_IN_LAYER else None)
        if place is None:
            raise UserError(f"lwc_transformer has no place for its weight {name}")
        new[place] = value
    return new
