"""Training speed of recurrent models, ours and fairseq's `lstm`, at the same sizes, on the same batches, in one run.

    python examples/deepatt/speed.py DATA [--models lstm deepatt:1 deepatt:3 deepatt:5] [--embed-dim 620] [...]

A model is `lstm` or a recurrent preset of this plugin (`abd` with its loss of both directions); a number after a colon
is K. Every model makes an update on the first batch, then every model on the second, and so on, so that whatever else
the machine does meets all of them. An update is a forward and a backward pass, clipping and Adam. Printed are the
medians over batches of target tokens (without padding) a second, and of their ratio to the first model's on the same
batch.
"""

import argparse
import statistics
import time

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import setup_task

import lwc_fairseq  # noqa: F401  (registers the models)
from lwc_fairseq.data.reverse import reverse_targets

PAD = 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder that fairseq-preprocess wrote")
    parser.add_argument("--models", nargs="+", default=["lstm", "deepatt:1", "deepatt:3", "deepatt:5"])
    parser.add_argument("--embed-dim", type=int, default=620)
    parser.add_argument("--hidden-dim", type=int, default=1000)
    parser.add_argument("--init-std", type=float, default=0.01, help="of our models (default: 0.01)")
    parser.add_argument("--batch-size", type=int, default=80, help="sentences (default: 80)")
    parser.add_argument("--batches", type=int, default=5, help="timed ones (default: 5)")
    parser.add_argument("--warm-up", type=int, default=1, help="batches before (default: 1)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def configure(args: argparse.Namespace, model: str):
    """The configuration that fairseq-train would have."""
    arch, _, layers = model.partition(":")
    if arch == "lstm":
        flags = lstm_flags(args.embed_dim, args.hidden_dim)
    else:
        flags = ["--embed-dim", args.embed_dim, "--hidden-dim", args.hidden_dim, "--init-std", args.init_std]
        flags += ["--attention-layers", layers] if layers else []
    parser = options.get_training_parser()
    return convert_namespace_to_omegaconf(
        options.parse_args_and_arch(parser, [args.data, "--arch", arch, *map(str, flags)])
    )


def lstm_flags(embed: int, hidden: int) -> list[str]:
    """fairseq's `lstm` as an RNNSearch: one bidirectional encoder layer, one decoder layer, the same widths."""
    widths = {"encoder-embed-dim": embed, "encoder-hidden-size": hidden, "encoder-layers": 1}
    widths |= {"decoder-embed-dim": embed, "decoder-hidden-size": hidden, "decoder-layers": 1}
    widths |= {"decoder-out-embed-dim": embed}
    return ["--encoder-bidirectional", *(str(part) for name, value in widths.items() for part in (f"--{name}", value))]


def cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


def update(model, optimizer, batch) -> None:
    optimizer.zero_grad()
    target = batch["target"]
    if getattr(model, "has_backward_decoder", False):
        logits, extra = model(**batch["net_input"], backward=True)
        backward = cross_entropy(extra["backward_logits"], reverse_targets(target, PAD))
        loss = 0.7 * cross_entropy(logits, target) + 0.3 * backward
    else:
        loss = cross_entropy(model(**batch["net_input"])[0], target)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()


def seconds(model, optimizer, batch) -> float:
    def wait():
        if batch["target"].is_cuda:
            torch.cuda.synchronize()

    wait()
    began = time.perf_counter()
    update(model, optimizer, batch)
    wait()
    return time.perf_counter() - began


def to_device(sample: dict, device: str) -> dict:
    net_input = {name: value.to(device) for name, value in sample["net_input"].items()}
    return {"net_input": net_input, "target": sample["target"].to(device)}


def main(args: argparse.Namespace) -> None:
    configurations = {model: configure(args, model) for model in args.models}
    task = setup_task(configurations[args.models[0]].task)
    task.load_dataset("train")
    iterator = task.get_batch_iterator(task.dataset("train"), max_sentences=args.batch_size, seed=1)
    samples = iter(iterator.next_epoch_itr(shuffle=True))
    models = {name: task.build_model(cfg.model).to(args.device).train() for name, cfg in configurations.items()}
    optimizers = {name: torch.optim.Adam(model.parameters(), lr=5e-4) for name, model in models.items()}
    times = {name: [] for name in models}
    tokens = []
    for number in range(args.batches + args.warm_up):
        sample = next(samples)
        batch = to_device(sample, args.device)
        tokens.append(sample["ntokens"])
        for name, model in models.items():
            times[name].append(seconds(model, optimizers[name], batch))
        print(f"batch {number + 1} of {args.batches + args.warm_up}, {sample['ntokens']} target tokens", flush=True)
        for name, model in models.items():
            if getattr(model, "has_backward_decoder", False):
                found = model.encoder.reverse_translations(batch["net_input"]["src_tokens"])
                print(f"  {name}: {found.size(1)} steps of greedy search, {found.ne(PAD).sum()} tokens", flush=True)

    print(f"\n{args.device}, {torch.get_num_threads()} threads\n")
    print(f"| model | parameters | target tokens a second | ÷ {args.models[0]} |\n|---|---|---|---|")
    for name, model in models.items():
        timed, peer = times[name][args.warm_up :], times[args.models[0]][args.warm_up :]
        speed = statistics.median(n / spent for n, spent in zip(tokens[args.warm_up :], timed, strict=True))
        ratio = statistics.median(other / spent for other, spent in zip(peer, timed, strict=True))
        parameters = sum(parameter.numel() for parameter in model.parameters()) / 1e6
        print(f"| {name} | {parameters:.1f}M | {speed:,.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main(parse())
