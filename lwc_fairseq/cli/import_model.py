"""`lwc-fairseq import`: the public checkpoints of Fonollosa, Casas, Costa-jussà, *Joint Source-Target Self Attention
with Locality Constraints*, 2019.

Their plugin, jarfo/joint, calls the model `joint_attention`. It computes what `lwc_transformer --layer-norm after
--positions fairseq` computes, but its checkpoints give the weights other names, and contain the same embeddings once
for each side. The command writes a checkpoint of `lwc_transformer`, so no other command needs code for the old form.
"""

import argparse
import logging
import re
from collections.abc import Mapping
from pathlib import Path

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.errors import flag

from ..files import make_place

NAMES = {
    "encoder.embed_tokens.weight": "embedding.tokens.weight",
    "decoder.layer_norm.weight": "norm.weight",
    "decoder.layer_norm.bias": "norm.bias",
}
NAMES_IN_LAYER = {
    "self_attn.in_proj": "attention.qkv",
    "self_attn.out_proj": "attention.out",
    "self_attn_layer_norm": "attention_norm",
    "fc1": "fc1",
    "fc2": "fc2",
    "final_layer_norm": "ffn_norm",
}
"""What has a weight and a bias in each layer."""

COMPUTED = (".version", ".embed_positions._float_tensor")
"""The ends of the names of fairseq's buffers, which are no weights."""


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
        help="the folder with the dictionaries of the model, which later commands then take by default",
    )
    command.set_defaults(call=import_command)


def import_command(args: argparse.Namespace) -> int:
    from fairseq.checkpoint_utils import torch_persistent_save

    from .average import read

    logging.getLogger("fairseq").setLevel(logging.WARNING)
    make_place(args.new, "NEW", inputs=[args.old])
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
        data: the folder with its dictionaries, or None for the one that the checkpoint names.

    Raises:
        UserError: it is not a checkpoint of `joint_attention`, it uses what `lwc_transformer` lacks, or the
            dictionaries do not have the size of its vocabulary.
    """
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.tasks import setup_task
    from omegaconf import OmegaConf

    args = vars(state.get("args") or argparse.Namespace())
    arch = args.get("arch")
    if not str(arch).removeprefix("local_").startswith("joint_attention"):
        raise UserError(f"its architecture is {arch}, not joint_attention of jarfo/joint: there is nothing to import")
    for name in ("encoder_learned_pos", "decoder_learned_pos"):
        if args.get(name):
            raise UserError(f"it was trained with {flag(name)}, but lwc_transformer has sinusoids alone")
    weights = convert_weights(state["model"])
    trained_in = args.get("data", "")
    folder = data or (trained_in if isinstance(trained_in, str) else trained_in[0])
    flags = ["--arch", "lwc_transformer", *model_flags(args, weights)]
    command = [folder, "--user-dir", "lwc_fairseq", "--task", "concat_translation", *flags]
    command += ["-s", args.get("source_lang"), "-t", args.get("target_lang"), "--optimizer", "adam", "--lr", "0"]
    command += ["--criterion", "label_smoothed_cross_entropy"]
    command += ["--label-smoothing", str(args.get("label_smoothing", 0.0))]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), command))
    history = {"criterion_name": "LabelSmoothedCrossEntropyCriterion", "optimizer_name": "FairseqAdam"}
    updates = state["optimizer_history"][-1]["num_updates"]
    task_state = {}
    if data:
        task, types = setup_task(cfg.task), len(weights["embedding.tokens.weight"])
        for dictionary in (task.source_dictionary, task.target_dictionary):
            if len(dictionary) != types:
                size = f"{dictionary.file} has {len(dictionary):,}"
                raise UserError(f"it has {types:,} types, but {size}: give the dictionaries of its training")
        task_state = task.state_dict()  # the words of its dictionaries
    checkpoint = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
        "model": {f"encoder.stack.{name}": value for name, value in weights.items()},
        "criterion": None,
        "optimizer_history": [{**history, "lr_scheduler_state": {}, "num_updates": updates}],
        "task_state": task_state,
        "extra_state": {},
        "last_optimizer_state": None,
    }
    return checkpoint, flags


def model_flags(args: Mapping, weights: Mapping) -> list[str]:
    """Return the options of `lwc_transformer`. Sizes are those of the weights."""
    flags = {
        "layers": sum(name.endswith(".fc1.bias") for name in weights),
        "embed-dim": weights["embedding.tokens.weight"].size(1),
        "ffn-embed-dim": len(weights["layers.0.fc1.bias"]),
        "attention-heads": args.get("decoder_attention_heads", 8),
        "positions": "fairseq",
        "layer-norm": "before" if "norm.weight" in weights else "after",
        "residual-gain": 1,
        "dropout": args.get("dropout", 0.1),
        "attention-dropout": args.get("attention_dropout", 0.0),
        "activation-dropout": args.get("relu_dropout", 0.0),
        "max-source-positions": args.get("max_source_positions", 1024),
        "max-target-positions": args.get("max_target_positions", 1024),
    }
    if widths := args.get("kernel_size_list"):
        flags["windows"] = ",".join(map(str, widths))
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    if "embedding.sides.weight" not in weights:
        words.append("--no-side-embedding")
    if args.get("no_token_positional_embeddings"):
        words.append("--no-position-embedding")
    return words


def convert_weights(old: Mapping) -> dict:
    """Return the weights of a :class:`CoordinatedStack`, in single precision, by the names of its parameters.

    Raises:
        UserError: `lwc_transformer` has no place for one of them, or the embeddings are missing.
    """
    import torch

    old = {name: value.float() for name, value in old.items() if not name.endswith(COMPUTED)}
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
        in_layer = re.fullmatch(r"decoder\.(layers\.\d+)\.(.+)[._](weight|bias)", name)
        if name in NAMES:
            new[NAMES[name]] = value
        elif in_layer and in_layer[2] in NAMES_IN_LAYER:
            new[f"{in_layer[1]}.{NAMES_IN_LAYER[in_layer[2]]}.{in_layer[3]}"] = value
        else:
            raise UserError(f"lwc_transformer has no place for its weight {name}")
    return new
