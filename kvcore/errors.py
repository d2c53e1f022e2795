"""Typed errors and warnings: a stable code, parameters, and an English sentence.

    KvcoreError
    ├── InvalidInput            what was given cannot be read
    │   ├── MissingField        a config, or a question, lacks what it needs
    │   ├── InvalidField        a config's field holds the wrong kind of value
    │   ├── InvalidJson         the text is not JSON
    │   ├── InvalidArgument     an option or parameter is out of range
    │   ├── InputTooLarge       the text is longer than any config
    │   ├── InvalidFile         a file's header states what no such file can hold
    │   ├── TruncatedFile       a file ends before its header does
    │   ├── UnreadableFile      whoever holds a file does not give its bytes
    │   ├── ConfigMissing       weights without what model they are of
    │   ├── FirstPartMissing    a split model without the part that describes it
    │   ├── SeveralModels       more models at once than can be meant
    │   ├── NoModelFiles        none of the files describes a model
    │   ├── HubError            the Hugging Face Hub did not give a model
    │   │   ├── HubGated        its terms have to be accepted first
    │   │   ├── HubNotFound     no public repository of that name
    │   │   ├── HubNoRevision   the repository has no such revision
    │   │   ├── HubNoConfig     the repository has no config
    │   │   ├── HubUnreadable   the file that came is not JSON
    │   │   ├── HubFailed       the Hub answered with another status
    │   │   ├── HubOffline      the Hub could not be reached
    │   │   ├── HubTimeout      the Hub did not answer in time
    │   │   └── HubTokenRefused the Hub does not take the token
    │   ├── InvalidTrace        a line of a trace of requests cannot be read
    │   ├── EmptyTrace          a trace holds no request
    │   ├── TraceTooLarge       a trace holds more than is ever read
    │   ├── UnknownModel        no catalog entry, id or alias of that name
    │   ├── UnknownFormat       no number format of that name
    │   ├── UnknownEngine       no engine or engine version of that name
    │   ├── UnknownOption       an engine has no option of that name
    │   ├── UnknownAccelerator  no device of that name
    │   ├── MemoryUnknown       a device whose memory nobody has published
    │   └── UnknownMethod       the api has no method of that name
    └── Unsupported             it can be read, but not computed
        ├── UnsupportedModel    an architecture whose cache is not known
        ├── AdapterOnly         files that change a model, without the model
        ├── UnsupportedFormat   a format this layer or engine cannot hold
        ├── UnsupportedOption   a setting an engine refuses for this model
        ├── DoesNotShard        a parallel size the model or engine cannot have
        └── FormatRowMismatch   a block format that does not divide a row

The codes are the contract; the sentences serve the command line and exceptions.
The page has its own words for every code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

Param = int | float | str | bool | None | list[str] | list[int]


class KvcoreError(ValueError):
    """Base of all errors kvcore raises on purpose."""

    code: ClassVar[str] = "internal_error"
    sentence: ClassVar[str] = "Something went wrong inside kvcore: {reason}"

    def __init__(self, **params: Param) -> None:
        self.params: dict[str, Param] = params
        super().__init__(_render(self.sentence, params))

    @property
    def message(self) -> str:
        return str(self)

    def to_json(self) -> dict[str, object]:
        """`{"code", "params", "message"}`, the shape every front end shows."""
        return {"code": self.code, "params": self.params, "message": self.message}


class InvalidInput(KvcoreError):
    """What was given cannot be read."""


class Unsupported(KvcoreError):
    """What was given can be read, but not computed."""


class MissingField(InvalidInput):
    code = "missing_field"
    sentence = "{field} is not given, and nothing can be said without it."


class InvalidField(InvalidInput):
    code = "invalid_field"
    sentence = "The config's {field} is {value}; expected {expected}."


class InvalidJson(InvalidInput):
    code = "invalid_json"
    sentence = "This is not JSON (line {line}, column {column}): {reason}."


class InvalidArgument(InvalidInput):
    code = "invalid_argument"
    sentence = "{argument} is {value}; expected {expected}."


class InputTooLarge(InvalidInput):
    code = "input_too_large"
    sentence = "The text has {bytes} bytes; a config has at most {limit}."


class InvalidFile(InvalidInput):
    code = "invalid_file"
    sentence = "{file} cannot be read: {where} is {found}; expected {expected}."


class TruncatedFile(InvalidInput):
    code = "truncated_file"
    sentence = (
        "{file} ends after {bytes} bytes; its header needs at least {needed_bytes}."
    )


class UnreadableFile(InvalidInput):
    code = "unreadable_file"
    sentence = "{file} could not be read: {reason}."


class ConfigMissing(InvalidInput):
    code = "config_missing"
    sentence = (
        "{files}: weights, but not what model they are of: give the config.json "
        "beside them as well."
    )


class FirstPartMissing(InvalidInput):
    code = "first_part_missing"
    sentence = "{file} is a part of a split model: give {first} beside it as well."


class SeveralModels(InvalidInput):
    code = "several_models"
    sentence = (
        "These files are {count} models ({names}): give at most {most} at a time."
    )


class NoModelFiles(InvalidInput):
    code = "no_model_files"
    sentence = (
        "None of {count} files describes a model ({names}): a config.json, .gguf or "
        ".safetensors file does."
    )


class HubError(InvalidInput):
    """The Hugging Face Hub did not give a model; `url` is what a person can open."""


class HubGated(HubError):
    code = "hub_gated"
    sentence = (
        "{repo} is gated: accept its terms at {url}, then set HF_TOKEN or give its "
        "config.json as a file."
    )


class HubNotFound(HubError):
    code = "hub_not_found"
    sentence = (
        "The Hub has no public model {repo}: look for it at {url}, or set HF_TOKEN if "
        "it is private."
    )


class HubNoRevision(HubError):
    code = "hub_no_revision"
    sentence = "{repo} has no revision {revision}: see {url}."


class HubNoConfig(HubError):
    code = "hub_no_config"
    sentence = (
        "{repo} has no config.json, as those of GGUF files or adapters have none: "
        "download the model's file from {url} and give that."
    )


class HubUnreadable(HubError):
    code = "hub_unreadable"
    sentence = "{file} of {repo} is not JSON but {found}: see {url}."


class HubFailed(HubError):
    code = "hub_failed"
    sentence = "{host} answered {status} for {file}: try again, or see {url}."


class HubOffline(HubError):
    code = "hub_offline"
    sentence = "{host} could not be reached ({reason}): {url} is what was asked for."


class HubTimeout(HubError):
    code = "hub_timeout"
    sentence = "{host} did not answer in time: {url} is what was asked for."


class HubTokenRefused(HubError):
    code = "hub_token_refused"
    sentence = "{host} does not take the token in HF_TOKEN."


class InvalidTrace(InvalidInput):
    code = "invalid_trace"
    sentence = "{file}, line {line}: {where} is {found}; expected {expected}."


class EmptyTrace(InvalidInput):
    code = "empty_trace"
    sentence = "{file} holds no requests."


class TraceTooLarge(InvalidInput):
    code = "trace_too_large"
    sentence = "{file} has more than {limit} {what}: no trace that long is read."


class UnknownModel(InvalidInput):
    code = "unknown_model"
    sentence = "No model is called {model!r}. Close names: {suggestions}."


class UnknownFormat(InvalidInput):
    code = "unknown_format"
    sentence = "No number format is called {format!r}. Known: {known}."


class UnknownEngine(InvalidInput):
    code = "unknown_engine"
    sentence = "No engine or version is called {engine!r}. Known: {known}."


class UnknownOption(InvalidInput):
    code = "unknown_option"
    sentence = "{engine} has no option {option!r}. Known: {known}."


class UnknownAccelerator(InvalidInput):
    code = "unknown_accelerator"
    sentence = "No accelerator is called {accelerator!r}. Close names: {suggestions}."


class MemoryUnknown(InvalidInput):
    code = "memory_unknown"
    sentence = (
        "Nobody has published what {accelerator} reports: give its memory in MiB."
    )


class UnknownMethod(InvalidInput):
    code = "unknown_method"
    sentence = "The api has no method {method!r}. Known: {known}."


class UnsupportedModel(Unsupported):
    code = "unsupported_model"
    sentence = "The cache of model_type {model_type!r} is not known: {reason}."


class AdapterOnly(Unsupported):
    code = "adapter_only"
    sentence = "{file} is an adapter for {base}, not a whole model: give that model."


class UnsupportedFormat(Unsupported):
    code = "unsupported_format"
    sentence = "{format} cannot hold {role} of this model: {reason}."


class UnsupportedOption(Unsupported):
    code = "unsupported_option"
    sentence = "{engine} cannot do {option} = {value} here: {reason}."


class DoesNotShard(Unsupported):
    code = "does_not_shard"
    sentence = "{argument} = {value} does not work with {count} {what}. Legal: {legal}."


class FormatRowMismatch(Unsupported):
    code = "format_row_mismatch"
    sentence = (
        "{format} stores blocks of {block} elements, which do not divide "
        "a row of {width}."
    )


def shown(value: object) -> str:
    """A short, printable form of any value for an error message."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    text = "".join(filter(str.isprintable, repr(value)))
    return text if len(text) <= 60 else text[:57] + "..."


def _render(sentence: str, params: Mapping[str, Param]) -> str:
    shown = {
        name: ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
        for name, value in params.items()
    }
    return sentence.format_map(shown)


def error_codes() -> tuple[str, ...]:
    """Every code an error can carry, sorted."""
    found: set[str] = {KvcoreError.code}
    queue = list(KvcoreError.__subclasses__())
    while queue:
        cls = queue.pop()
        found.add(cls.code)
        queue.extend(cls.__subclasses__())
    return tuple(sorted(found))


WARNINGS: Final[Mapping[str, str]] = {
    "fewer_requests_planned": (
        "The engine never runs {asked} requests at once: these plans are of {requests}."
    ),
    "cache_on_host": (
        "The caches, {bytes} bytes in all, lie in host memory: the GPU holds none, and "
        "whether the host has room is not known here."
    ),
    "beyond_trained_context": (
        "{tokens} tokens is beyond the trained context of {max_context}."
    ),
    "context_unknown": "The config does not say how long a context it was trained for.",
    "unknown_model_type": (
        "model_type {model_type!r} is not known. Read as {assumed}: check the layers."
    ),
    "assumed_default": (
        "{field} is not in the config; {value} is what {model_type} means by that."
    ),
    "window_not_applied": (
        "The config states a window of {window} but not which layers it applies to: "
        "none was taken to have it."
    ),
    "state_excluded": "The recurrent state is left out of the total, as asked.",
    "encoder_tokens_assumed": "The encoder is taken to hold {value} tokens.",
    "no_draft_layers": "The config describes no draft layers.",
    "cache_shared_between_layers": (
        "{layers} layers reuse the cache of another layer and store nothing."
    ),
    "working_set_estimated": (
        "macOS lets the GPU use about {bytes} bytes of {ram} bytes of RAM: an estimate."
    ),
    "reserve_estimated": "The reserve of {bytes} bytes per GPU is an estimate.",
    "weights_estimated": (
        "The weights of {bytes} bytes are counted from the config as {format}."
    ),
    "kv_heads_replicated": (
        "{tp} tensor-parallel ranks share {num_kv_heads} KV heads: each is kept "
        "{copies} times."
    ),
    "latent_replicated": "Each of {tp} tensor-parallel ranks keeps the whole latent.",
    "context_too_small": (
        "{sequences} sequences of {tokens} tokens do not fit in {cells} cells."
    ),
    "setting_overridden": "{engine} sets {option} to {value} here, not to {asked}.",
    "kv_heads_uneven": (
        "{num_kv_heads} KV heads do not divide over {ranks} ranks: {engine} sizes a "
        "pool for it but may refuse to load the model."
    ),
    "draft_outside_pool": (
        "{engine} does not count {layers} draft layers in its pool: they take memory "
        "outside the static share."
    ),
    "rules_not_executed": (
        "{engine}'s rules are those of its documentation and source: they were read, "
        "and checked against published logs, but not run."
    ),
    "small_blocks": (
        "{engine} has paths that need blocks of {least} tokens or more: {tokens} may "
        "be refused."
    ),
    "weight_files_missing": (
        "{missing} of {files} weight files are not here ({names}): there are more "
        "weights than the {bytes} bytes of the others."
    ),
    "weight_types_unknown": (
        "Weights of {types} are of a type not known here: their bytes are those "
        "between the tensors' places in the file."
    ),
    "edit_without_effect": (
        "Setting {field} by hand changes nothing here: this model does not read it, or "
        "means the same without."
    ),
    "hub_renamed": "{repo} is called {name} now.",
    "hub_no_index": (
        "{repo} has no {file} that can be read: its weights are counted from the "
        "config."
    ),
    "files_left_out": "Left out, for they are no models by themselves: {names}.",
    "files_beside_gguf": (
        "Left out, for the GGUF file beside them says what the model is: {names}."
    ),
    "log_not_understood": (
        "No line of this was understood. Start-up lines of {engines} are, and messages "
        "that memory ran out."
    ),
    "log_has_several_starts": "The log has {starts} starts: the last one was read.",
    "log_has_several_engines": (
        "The log has lines of several engines ({engines}): those of {engine} were read."
    ),
    "log_model_unknown": (
        "The log names no model that is known here ({model!r}): give one to compare."
    ),
    "log_model_missing": "The log names no model: give one to compare.",
    "log_engine_not_computed": (
        "Lines of {engine} are read, but kvcore computes no cache of it to compare."
    ),
    "log_cut": (
        "The log is long: its first {head} and last {tail} characters were read."
    ),
    "log_model_assumed": "{printed} was taken as {model}.",
    "log_version_nearest": (
        "There are no rules of {engine} {version} here: those of {used} were used."
    ),
    "requests_cut": (
        "{requests} of {of} requests are longer than {limit} tokens: they were cut "
        "there."
    ),
    "lengths_cut": (
        "{percent}% of the requests would be longer than {limit} tokens: they are cut "
        "there."
    ),
    "overloaded": (
        "On average the requests in flight need more than the pool has: they will "
        "queue."
    ),
    "more_than_fit": (
        "Only {most} requests fit: the bound is for {requests}, as if there were room."
    ),
    "draft_not_in_bound": (
        "The draft is left out: nobody can compute how often it is right."
    ),
    "bandwidth_unknown": (
        "Nobody has published the memory bandwidth of {gpu}: give it to get a bound."
    ),
    "compute_unknown": (
        "The operations of a step, or those {gpu} can do, are not known: only reading "
        "bounds the speed."
    ),
    "top_k_unknown": (
        "The config does not say how many rows its indexer picks: all are taken."
    ),
    "reuse_needs_states": (
        "A hit needs the recurrent state at the end of the prefix: one is taken to be "
        "kept at the end of every prompt."
    ),
    "reuse_windows_assumed": (
        "The last window of every prompt is charged, and prefixes that end elsewhere "
        "are taken to find theirs: an upper bound."
    ),
    "reuse_no_room": (
        "Running requests take {running_bytes} bytes of a pool of {pool_bytes}: "
        "nothing is left to keep prefixes in."
    ),
    "reuse_no_times": (
        "The trace has no times, so {rate} tokens a second do not tell how many "
        "requests run at once: {requests} are taken to."
    ),
    "engine_version_differs": "{engine} {version} keeps a different cache: {reason}.",
}
"""Warning code -> English sentence."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the reader must know to trust a number."""

    code: str
    params: Mapping[str, Param] = field(default_factory=dict)

    @property
    def message(self) -> str:
        return _render(WARNINGS[self.code], self.params)

    def to_json(self) -> dict[str, object]:
        return {"code": self.code, "params": dict(self.params)}
