"""`lwc-fairseq serve`: the page of `lwc-fairseq attention` with a field to type into."""

import argparse

from lwc_fairseq_compat import UserError

from .arguments import add_translator, load_with_attention


def add_serve(commands) -> None:
    serve = commands.add_parser(
        "serve",
        help="translate and explore attention in a browser",
        description="Serve a page on this machine: type a sentence, and see its translation, where the model attends, "
        "and the beam search. Other machines cannot reach it. The file text.yaml in the folder of the data, which the "
        "recipes write, says how to prepare the text. Without it, type tokens as the data has them.",
    )
    add_translator(serve, "sentences are")
    serve.add_argument("--port", type=int, default=8000, help="port; 0 chooses a free one (default: 8000)")
    serve.set_defaults(call=serve_command)


def serve_command(args: argparse.Namespace) -> int:
    from ..analysis.attention_server import PageServer

    translator = load_with_attention(args)
    try:
        server = PageServer(translator, args.port)
    except (OSError, OverflowError) as error:
        raise UserError(f"--port {args.port}: {error}") from error
    with server:
        print(f"http://127.0.0.1:{server.server_port}/ for programs of this machine alone; Ctrl-C ends", flush=True)
        server.serve_forever()
    return 0
