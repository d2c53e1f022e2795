"""The commands and options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from kvcore import __version__
from kvcore.errors import InvalidArgument


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one typed line, like every other error.

    Options are spelled in full: a shortened one would change its meaning, or lose it,
    the day another option begins alike.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise InvalidArgument(argument=self.prog, value=message, expected="see --help")


def parser(hub: bool = False) -> argparse.ArgumentParser:
    """The command line; with `hub`, the model is named by --hub instead of MODEL."""
    top = _Parser(prog="kvcore", description="Exact sizes of KV caches.")
    top.add_argument("--version", action="version", version=f"kvcore {__version__}")
    commands = top.add_subparsers(dest="command", required=True, parser_class=_Parser)

    models = commands.add_parser("models", help="the models kvcore knows by name")
    _json_flag(models)

    show = commands.add_parser("show", help="what is known of one model")
    _model_argument(show, hub)
    _json_flag(show)

    estimate = commands.add_parser("estimate", help="the bytes of a model's cache")
    _model_argument(estimate, hub)
    for name in ("tokens", "sequences", "encoder-tokens", "checkpoint-interval"):
        estimate.add_argument(f"--{name}", metavar="N")
    for name in ("kv-format", "indexer-format", "state-format"):
        estimate.add_argument(f"--{name}", metavar="F")
    estimate.add_argument("--no-state", action="store_true")
    estimate.add_argument("--draft", action="store_true")
    _engine_arguments(estimate)
    _json_flag(estimate)

    plan = commands.add_parser("plan", help="does it fit, and how far does it go")
    _plan_arguments(plan, hub)
    _json_flag(plan)

    levers = commands.add_parser("levers", help="what to change first, and its gain")
    _plan_arguments(levers, hub)
    for name in ("traffic-context", "traffic-mean", "common-prefix"):
        levers.add_argument(f"--{name}", metavar="N")
    levers.add_argument("--only", metavar="LEVER,...")
    _json_flag(levers)

    decode = commands.add_parser("decode", help="how fast at most, and what it costs")
    _plan_arguments(decode, hub)
    for name in ("prompt-tokens", "bandwidth-bytes-per-second", "flops-per-second"):
        decode.add_argument(f"--{name}", metavar="N")
    decode.add_argument("--price", metavar="X", help="of one GPU and hour")
    _json_flag(decode)

    prices = commands.add_parser("prices", help="dated list prices of accelerators")
    prices.add_argument("--gpu", metavar="ID")
    _json_flag(prices)

    _traffic_commands(commands.add_parser, hub)

    log = commands.add_parser("log", help="what an engine's log says, and why")
    log.add_argument("file", metavar="FILE", help="a log, or - for standard input")
    log.add_argument("--model", metavar="MODEL", help="not the one in the log")
    log.add_argument("--gpu", metavar="ID")
    log.add_argument("--engine-version", metavar="V")
    _json_flag(log)

    gpus = commands.add_parser("gpus", help="the accelerators kvcore knows by name")
    _json_flag(gpus)
    return top


def _traffic_commands(add: Callable[..., argparse.ArgumentParser], hub: bool) -> None:
    workload = add("workload", help="how full the pool is, how often")
    _plan_arguments(workload, hub, count="?")
    _workload_arguments(workload)
    _json_flag(workload)

    reuse = add("reuse", help="will prefixes be found in the cache")
    reuse.add_argument(
        "trace",
        metavar="TRACE",
        help="JSONL of requests with hash_ids, also as .gz, - for standard input, or "
        "the id of made-up traffic",
    )
    _plan_arguments(reuse, hub, "--model")
    _reuse_arguments(reuse)
    _json_flag(reuse)

    traffic = add("traffic", help="the made-up traffic for reuse")
    _json_flag(traffic)


def _reuse_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--budgets-gib", metavar="A,B,...", help="pools of a replica")
    command.add_argument("--policy", metavar="P", help="lru, fifo or priority")
    command.add_argument(
        "--retention",
        metavar="START:END=PRIORITY[/SECONDS],...",
        help="with --policy priority: what TensorRT-LLM keeps longer",
    )
    command.add_argument("--trace-block-tokens", metavar="N")
    command.add_argument("--replicas", metavar="N")
    command.add_argument("--routing", metavar="R", help="random or prefix")
    command.add_argument("--warmup", metavar="X", help="share not counted, 0 to 0.95")
    command.add_argument("--tokens-per-second", metavar="X", help="of one request")


def _workload_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--lengths",
        dest="trace",
        metavar="FILE",
        help="a CSV or JSONL of requests with their lengths, also as .gz",
    )
    for name in ("prompt", "output"):
        command.add_argument(
            f"--{name}", metavar="N", help="tokens: a number, or P50/P95"
        )
    command.add_argument("--arrival-rate", metavar="X", help="requests a second")
    command.add_argument("--tokens-per-second", metavar="X", help="of one request")
    command.add_argument("--seconds-per-request", metavar="X")
    command.add_argument("--prefill-tokens-per-second", metavar="X")
    command.add_argument("--odds", metavar="X", help="of overflow, 0.01 by default")
    command.add_argument("--pool-tokens", metavar="N", help="instead of MODEL and GPU")


def _plan_arguments(
    command: argparse.ArgumentParser,
    hub: bool,
    model: str = "model",
    count: str | None = None,
) -> None:
    _model_argument(command, hub, model, count)
    command.add_argument("--gpu", metavar="ID")
    for name in (
        "gpus",
        "memory-mib",
        "dp",
        "context",
        "concurrency",
        "batched-tokens",
        "pool-bytes",
        "reserve-bytes",
        "weight-bytes",
        "shared-prefix",
    ):
        command.add_argument(f"--{name}", metavar="N")
    command.add_argument("--memory-fraction", metavar="X")
    for name in ("kv-format", "indexer-format", "state-format", "weight-format"):
        command.add_argument(f"--{name}", metavar="F")
    command.add_argument("--draft", action="store_true")
    command.add_argument("--draft-model", metavar="MODEL")
    _engine_arguments(command)


def _model_argument(
    command: argparse.ArgumentParser,
    hub: bool,
    model: str = "model",
    count: str | None = None,
) -> None:
    if not hub:
        command.add_argument(
            model,
            nargs=count,
            metavar="MODEL",
            help="catalog id, Hugging Face id, alias, a config.json, .gguf or "
            ".safetensors file, a folder with a config.json, or - for standard input",
        )
    command.add_argument(
        "--hub",
        metavar="ORG/NAME[@REVISION]",
        help="instead of MODEL: get its config.json and the sizes of its weights from "
        "the Hugging Face Hub (HF_TOKEN, HF_REVISION, HF_ENDPOINT)",
    )
    command.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        help="set a field of the model's config; NAME= removes it; may be repeated",
    )


def _json_flag(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _engine_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--engine", metavar="E")
    command.add_argument("--engine-version", metavar="V")
    for name in ("tp", "pp", "dcp", "block-tokens"):
        command.add_argument(f"--{name}", metavar="N")
    command.add_argument(
        "--engine-option",
        metavar="NAME=VALUE",
        action="append",
        help="one of the engine's own settings; may be repeated",
    )
