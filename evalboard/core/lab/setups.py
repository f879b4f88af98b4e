"""List the settings two runs were decoded with, field by field, and build setups in between.

A field is what can be changed independently: the dtype, one setting of the engine or of the sampling, the batching
with all that belongs to it. Its value is what is in effect on the hardware that decodes.
"""

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.contract.lab_kinds import FieldReach
from evalboard.contract.manifest import MovedField
from evalboard.core.profile import SIZES

SPACINGS: Mapping[str, Callable[[str], str]] = {
    "leading_newline": lambda text: f"\n{text}",
    "trailing_newline": lambda text: f"{text}\n",
    "doubled_lines": lambda text: text.replace("\n", "\n\n"),
    "one_line": lambda text: re.sub(r"\s+", " ", text).strip(),
}


def respace(text: str, name: str) -> str:
    """Return a response with its spacing changed; name: one of SPACINGS."""
    return SPACINGS[name](text)


MODEL = ("model_path", "model_repo", "model_revision", "model_adapter")
OF_ENDPOINT = ("dtype", "quantization", "max_model_len", *SIZES)
BATCHING = "batching"
WORKER = "worker"
LIMITS = "limits"
SCORER = "scorer"
KINDS = ("cpu", "cuda")
# Fields whose change needs another engine process, where they begin so; sampling is sent with each request.
OF_ENGINE = ("model", *OF_ENDPOINT, BATCHING, WORKER, "engine.", "env.")
BESIDE_NUMBERS = ("engine.seed",)  # the seed of what is sampled is sent with each call

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is decoded with.

    serving: of the endpoint: model, OF_ENDPOINT, pool. settings: of the profile. limits: of the suite version
    ({"version", "max_tokens", "stop"}).
    """

    serving: Mapping[str, Any]
    settings: Mapping[str, Any]
    limits: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field that differs. code, facts: why it cannot be reached, "" where it can."""

    name: str
    baseline: Any
    candidate: Any
    reach: FieldReach
    code: str = ""
    facts: Mapping[str, Any] | None = None

    @property
    def is_settable(self) -> bool:
        return self.reach in (FieldReach.HERE, FieldReach.WORKER)


def find_fields(baseline: Setup, candidate: Setup, *, kind: str) -> tuple[Field, ...]:
    """Return the fields that can be set and differ in effect; kind: of the hardware, "cpu" or "cuda"."""
    values = [_values(setup, kind) for setup in (baseline, candidate)]
    names = dict.fromkeys([*values[0], *values[1]])
    return tuple(
        Field(name, values[0].get(name), values[1].get(name), FieldReach.WORKER if name == WORKER else FieldReach.HERE)
        for name in names
        if values[0].get(name) != values[1].get(name) and name not in BESIDE_NUMBERS
    )


def combine_setups(baseline: Setup, candidate: Setup, turned: Iterable[str]) -> Setup:
    """Return the baseline's setup with these fields at the candidate's values."""
    names = frozenset(turned)
    serving = dict(baseline.serving)
    for field_name, keys in (("model", MODEL), (WORKER, ("pool",))):
        if field_name in names:
            serving |= {key: candidate.serving[key] for key in keys}
    serving |= {key: candidate.serving[key] for key in OF_ENDPOINT if key in names}
    settings = copy.deepcopy(dict(baseline.settings))
    for path in {**_paths(baseline.settings), **_paths(candidate.settings)}:
        if _field_of(path) in names:
            _set(settings, path, _get(candidate.settings, path))
    return Setup(serving, settings, candidate.limits if LIMITS in names else baseline.limits)


def find_unreachable(moved: Iterable[MovedField], fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return the fields of two stacks that differ, and follow from nothing that can be set.

    moved: between what served most of either run, "versions.vllm" and the like. Where a setting of the engine differs
    too, what the engine reports of itself follows from that.
    """
    names = {field.name for field in fields}
    if WORKER in names:
        return ()
    follows = any(name.startswith(OF_ENGINE) for name in names)
    return tuple(
        Field(each.field, each.baseline, each.candidate, FieldReach.NOT_REACHABLE, "same_pool")
        for each in moved
        if not (follows and each.field.startswith(("engine.", "env.")))
    )


def needs_engine(name: str) -> bool:
    """Tell whether turning a field needs another engine process."""
    return name.startswith(OF_ENGINE)


def is_case_alone(settings: Mapping[str, Any], *, kind: str) -> bool:
    """Tell whether a case's answer is independent of the other cases, so that a few can be decoded."""
    cached = _values(Setup({}, settings, {}), kind).get("engine.enable_prefix_caching")
    return settings.get("batch_class") in ("alone", "invariant") and not cached


def _values(setup: Setup, kind: str) -> dict[str, Any]:
    """Field → its value in effect."""
    serving = setup.serving
    values: dict[str, Any] = {}
    if serving:
        path, repo, revision, adapter = (serving[name] for name in MODEL)
        base = path or f"{repo}@{revision}"
        values["model"] = f"{adapter} on {base}" if adapter else base
        values |= {name: serving[name] for name in OF_ENDPOINT}
        values[WORKER] = serving["pool"]
    batching: dict[str, Any] = {}
    for path, value in _paths(setup.settings).items():
        if path[0] in KINDS and path[0] != kind:
            continue
        name = _field_of(path)
        if name == BATCHING:
            batching[path[-1]] = value  # that of the hardware comes last, and wins
        else:
            values[name] = value
    values[BATCHING] = batching
    if setup.limits:
        values[LIMITS] = {name: value for name, value in setup.limits.items() if name != "version"}
    return values


def _field_of(path: Path) -> str:
    leaf = path[-1]
    if leaf in ("batch_class", "group_size", "max_num_seqs") or path[0] == "requires":
        return BATCHING
    return f"env.{leaf}" if path[-2] == "env" else f"engine.{leaf}" if path[-2] == "engine" else ".".join(path)


def _paths(settings: Mapping[str, Any]) -> dict[Path, Any]:
    """Return path → value of every setting; those for one hardware kind come last."""
    paths: dict[Path, Any] = {}
    for section, value in sorted(settings.items(), key=lambda row: row[0] in KINDS):
        if section in KINDS:
            paths |= {(section, part, name): each for part, rest in value.items() for name, each in rest.items()}
        elif isinstance(value, Mapping):
            paths |= {(section, name): each for name, each in value.items()}
        else:
            paths[(section,)] = value
    return paths


def _get(settings: Mapping[str, Any], path: Path) -> Any:
    value: Any = settings
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def _set(settings: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value at a path, or remove it if the value is None."""
    part = settings
    for name in path[:-1]:
        part = part.setdefault(name, {})
    if value is None:
        part.pop(path[-1], None)
    else:
        part[path[-1]] = value
