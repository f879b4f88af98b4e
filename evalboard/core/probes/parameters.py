"""Check a probe's parameters, and plan the calls that follow from them (docs/probes.md)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from evalboard.contract.probe_kinds import ProbeKind
from evalboard.core.document import Problems, text_problem
from evalboard.core.fields import FieldCheck, check_flag, check_number, check_whole
from evalboard.core.probes import prompts as probe_prompts
from evalboard.core.probes.border_probe import plan_border_calls
from evalboard.core.probes.call import ProbeExchange
from evalboard.core.probes.capability_calls import choose_capability_sampling, plan_capability_calls
from evalboard.core.probes.determinism_probe import plan_determinism_calls
from evalboard.core.probes.vendor_calls import choose_vendor_sampling, list_vendor_prompts, plan_vendor_calls
from evalboard.core.profile import MAX_TESTED_BATCH

MAX_CALLS = 1000  # of a seed probe; of copies in a batch probe, without its load
MAX_PROMPT_CHARS = 8_000
MAX_SLUG_CHARS = 80
# Copies per round, in turn: with the load they make steps of many sizes.
COPIES_A_ROUND = (4, 1, 16, 2, 8)
ROUTING_TOKENS = 8  # enough to see whether two engines answer alike

_RANDOM_SEED = check_whole(0, 2**31 - 1)
_FIELDS: dict[str, dict[str, tuple[Any, FieldCheck]]] = {
    "seed": {
        "calls_per_group": (5, check_whole(2, 50)),
        "greedy_calls": (1, check_whole(0, 5)),  # of each prompt, at a temperature of 0
        "max_tokens": (64, check_whole(8, 512)),
        "temperature": (1.0, check_number(0.1, 2)),  # at 0 there is nothing for a seed to decide
        "random_seed": (0, _RANDOM_SEED),
    },
    "batch": {
        "copies": (50, check_whole(2, MAX_CALLS)),
        "load": (8, check_whole(0, 32)),
        "seats": (
            MAX_TESTED_BATCH,
            check_whole(1, MAX_TESTED_BATCH),
        ),  # of the profile: the steps of a full batch are probed too
        "max_tokens": (64, check_whole(1, 512)),
        "random_seed": (0, _RANDOM_SEED),
    },
    "routing": {"calls": (8, check_whole(1, 100))},
    "canary": {"top_k": (5, check_whole(3, 20)), "random_seed": (0, _RANDOM_SEED)},
    "capability": {"max_tokens": (24, check_whole(8, 128))},
    "determinism": {
        "passes": (2, check_whole(1, 10)),  # over all conditions
        "seats": (MAX_TESTED_BATCH, check_whole(1, MAX_TESTED_BATCH)),  # of the profile
        "max_tokens": (32, check_whole(1, 512)),
        "random_seed": (0, _RANDOM_SEED),
    },
    "audit": {"max_tokens": (64, check_whole(1, 512))},
    "verify": {},
    "border": {
        "search": (False, check_flag),  # for prompts to watch, among `prompts`
        "search_calls": (8, check_whole(4, 50)),  # of each prompt
        "n_prompts": (20, check_whole(2, 40)),  # that a search keeps
        "calls": (10, check_whole(1, 50)),  # of each prompt that is watched
        "max_tokens": (1, check_whole(1, 16_384)),  # more where a model thinks first
        "temperature": (1.0, check_number(0, 2)),
        "random_seed": (0, _RANDOM_SEED),
    },
    "vendor": {
        "max_tokens": (32, check_whole(8, 128)),
        # Before the question of a long call; 350 are about 4,000 tokens.
        "context_sentences": (350, check_whole(200, 20_000)),
    },
}
# Slugs; of a verification each has its default, which the server finds (`runs.forced.known_answers`).
_NAMES = ("suite", "reference", "numerics", "planted")
_BUILT_IN = {
    "seed": probe_prompts.OPEN_ENDED,
    "batch": probe_prompts.OPEN_ENDED,
    "canary": probe_prompts.CANARY,
    "determinism": probe_prompts.OPEN_ENDED,
    "audit": probe_prompts.OPEN_ENDED,
    "border": probe_prompts.BORDER,
}
_FIXED_PROMPTS = {"routing": probe_prompts.ROUTING, "capability": probe_prompts.CAPABILITY}
_N_PROMPTS = {"seed": 5, "batch": 5, "canary": 20, "determinism": 5, "audit": 10, "border": 20}
_MAX_PROMPTS = {"seed": 20, "batch": 10, "canary": 200, "determinism": 10, "audit": 200, "border": 200}
_OF_A_SUITE = ("canary", "audit")  # where a suite is named in place of prompts
_LOADED = ("batch", "determinism")


def complete_parameters(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with every default filled in; complete ones come back as they are.

    `prompts` is a list of texts, or how many of the built-in ones to take. A canary or an audit has a `suite` (its
    slug) instead, if one is given, and `cases` (their ids) where they are chosen; a verification has that and
    endpoints, None for those that are to be found. Raises InvalidInput whose fields are `kind`, `parameters` or
    `parameters.<name>`.
    """
    problems = Problems()
    if kind not in set(ProbeKind):
        problems.add("kind", f"Must be one of {', '.join(ProbeKind)}.")
    elif not isinstance(given, Mapping):
        problems.add("parameters", "Must be an object.")
    problems.raise_if_any("The probe is not valid")
    fields = _FIELDS[kind]
    with_prompts = {"prompts": (_N_PROMPTS[kind], None)} if kind in _N_PROMPTS else {}
    named = _NAMES if kind == "verify" else ("suite", "cases") if kind in _OF_A_SUITE else ()
    known = [*with_prompts, *named, *fields]
    for name in given:
        if name not in known:
            problems.add(f"parameters.{name}", f"There is no such parameter; there are {', '.join(known)}.")
    parameters = _source(kind, given, problems)
    for name, (default, check) in fields.items():
        parameters[name] = given.get(name, default)
        if words := check(parameters[name]):
            problems.add(f"parameters.{name}", words)
    if not problems.fields:
        _limit_calls(kind, parameters, problems)
    problems.raise_if_any("The probe is not valid")
    return parameters


def list_prompt_texts(kind: str, parameters: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the texts that a call's `prompt` indexes, None if it indexes the suite's cases.

    The load of a batch or determinism probe comes after its prompts.
    """
    if kind in _FIXED_PROMPTS:
        return _FIXED_PROMPTS[kind]
    if kind == "vendor":
        return list_vendor_prompts(parameters)
    if "suite" in parameters:
        return None
    return (*parameters["prompts"], *(probe_prompts.LOAD if kind in _LOADED else ()))


def choose_sampling(
    kind: str, parameters: Mapping[str, Any], group: str, answered: Iterable[ProbeExchange] = ()
) -> dict[str, Any]:
    """Return the sampling of a group's calls, which replaces the profile's. The seed is in the call.

    Load is generated up to its limit: if it ended early, the copies would be decoded without it. answered: the calls of
    the rounds before, on which a capability check's calls depend; its sampling is complete.
    """
    ends: dict[str, Any] = {"stop": [], "min_tokens": 0, "ignore_eos": group == "load"}
    greedy: dict[str, Any] = {**ends, "temperature": 0.0}
    match ProbeKind(kind):
        case ProbeKind.SEED if group != "greedy":
            free = {"temperature": float(parameters["temperature"]), "top_p": 1.0, "top_k": 0, "min_p": 0.0}
            return {**ends, **free, "max_tokens": parameters["max_tokens"]}
        case ProbeKind.SEED | ProbeKind.BATCH | ProbeKind.DETERMINISM | ProbeKind.AUDIT:
            return {**greedy, "max_tokens": parameters["max_tokens"]}
        case ProbeKind.ROUTING:
            return {**greedy, "max_tokens": ROUTING_TOKENS}
        case ProbeKind.CANARY:
            return {**greedy, "max_tokens": 1, "logprobs": parameters["top_k"]}
        case ProbeKind.CAPABILITY:
            return choose_capability_sampling(parameters, group, answered)
        case ProbeKind.VENDOR:
            return choose_vendor_sampling(parameters, group)
        case ProbeKind.BORDER:
            return {"temperature": float(parameters["temperature"]), "max_tokens": parameters["max_tokens"]}
        case ProbeKind.VERIFY:
            raise ValueError("A verification makes no calls: it uses runs.")


def plan_calls(kind: str, parameters: Mapping[str, Any], prompts: Sequence[Any]) -> tuple[ProbeExchange, ...]:
    """Return a probe's calls in sending order; the calls of one round are decoded together.

    prompts: from `list_prompt_texts`, or the suite's cases; only their number matters. Kinds of
    `OF_EACH_WORKER` send these calls to each worker. The same parameters give the same calls.
    """
    match ProbeKind(kind):
        case ProbeKind.SEED:
            return _seed_calls(parameters)
        case ProbeKind.BATCH:
            return _batch_calls(parameters, n_texts=len(prompts))
        case ProbeKind.ROUTING:
            return tuple(ProbeExchange(prompt=0, group="ask", round=index) for index in range(parameters["calls"]))
        case ProbeKind.CANARY | ProbeKind.AUDIT:
            # Each by itself and in one order: what shares a step with it must not be what changes between two runs.
            return tuple(ProbeExchange(prompt=index, group="ask", round=index) for index in range(len(prompts)))
        case ProbeKind.CAPABILITY:
            return plan_capability_calls()
        case ProbeKind.VENDOR:
            return plan_vendor_calls()
        case ProbeKind.DETERMINISM:
            return plan_determinism_calls(parameters)
        case ProbeKind.BORDER:
            return plan_border_calls(parameters, len(prompts))
        case ProbeKind.VERIFY:
            return ()


def _source(kind: str, given: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Read where the prompts come from: {"prompts": texts} or {"suite": slug}; empty if they are fixed.

    For a verification, read all the names that it takes.
    """
    if kind == "verify":
        return {name: _slug(name, given.get(name), problems) for name in _NAMES}
    if kind not in _N_PROMPTS:
        return {}
    if kind in _OF_A_SUITE and "suite" in given:
        if "prompts" in given:
            problems.add("parameters.suite", "Give prompts or a suite, not both.")
            return {"suite": given["suite"]}
        if given["suite"] is None:
            problems.add("parameters.suite", "Must be the slug of a suite.")
        chosen = {"cases": _case_ids(kind, given["cases"], problems)} if "cases" in given else {}
        return {"suite": _slug("suite", given["suite"], problems), **chosen}
    if "cases" in given and kind in _OF_A_SUITE:
        problems.add("parameters.cases", "Give the suite that they are of as well.")
    return {"prompts": _prompts(kind, given.get("prompts", _N_PROMPTS[kind]), problems)}


def _case_ids(kind: str, given: Any, problems: Problems) -> list[str]:
    most = _MAX_PROMPTS[kind]
    are_texts = isinstance(given, list) and all(isinstance(each, str) and not text_problem(each) for each in given)
    if not are_texts or not 1 <= len(given) <= most:
        problems.add("parameters.cases", f"Must be a list of the ids of 1 to {most} cases of the suite.")
        return []
    if len(set(given)) < len(given):
        problems.add("parameters.cases", "A case is given twice.")
    return list(given)


def _slug(name: str, given: Any, problems: Problems) -> Any:
    is_slug = isinstance(given, str) and 1 <= len(given) <= MAX_SLUG_CHARS and not text_problem(given)
    if given is not None and not is_slug:
        what = "a suite" if name == "suite" else "an endpoint"
        problems.add(f"parameters.{name}", f"Must be the slug of {what}.")
    return given


def _prompts(kind: str, given: Any, problems: Problems) -> list[str]:
    built_in, most = _BUILT_IN[kind], _MAX_PROMPTS[kind]
    if type(given) is int:
        if not 1 <= given <= len(built_in):
            problems.add("parameters.prompts", f"Must be 1 to {len(built_in)} of the built-in prompts, or a list.")
        return list(built_in[:given])
    if not isinstance(given, list) or not 1 <= len(given) <= most:
        problems.add("parameters.prompts", f"Must be a list of 1 to {most} texts, or a whole number.")
        return []
    for index, text in enumerate(given):
        if words := _prompt_problem(text):
            problems.add(f"parameters.prompts[{index}]", words)
        elif text in given[:index]:
            problems.add(
                f"parameters.prompts[{index}]",
                "Is given twice; the answers of one prompt are compared with each other.",
            )
    return list(given)


def _prompt_problem(text: Any) -> str | None:
    if not isinstance(text, str) or not text.strip():
        return "Must be a text that says something."
    if len(text) > MAX_PROMPT_CHARS:
        return f"Must have at most {MAX_PROMPT_CHARS:,} characters; this one has {len(text):,}."
    problem = text_problem(text)
    return None if problem is None else f"It {problem}."


def _limit_calls(kind: str, parameters: Mapping[str, Any], problems: Problems) -> None:
    n_prompts = len(parameters.get("prompts", ()))
    name, a_prompt = ("calls_per_group", 2) if kind == "seed" else ("copies", 1)
    if kind in ("seed", "batch") and n_prompts * a_prompt * parameters[name] > MAX_CALLS:
        most = MAX_CALLS // (n_prompts * a_prompt)
        problems.add(f"parameters.{name}", f"{n_prompts} prompts leave room for at most {most}: {MAX_CALLS:,} in all.")


def _seed_calls(parameters: Mapping[str, Any]) -> tuple[ProbeExchange, ...]:
    """Return both groups in one random order, so that load affects both alike, then the greedy calls.

    Only the seed of `same` is used more than once. Probes from before greedy calls existed have no such parameter.
    """
    rng = np.random.default_rng(parameters["random_seed"])
    n_prompts, n_calls = len(parameters["prompts"]), parameters["calls_per_group"]
    fixed, *others = (int(seed) for seed in rng.choice(2**31 - 1, size=1 + n_prompts * n_calls, replace=False))
    wanted = [(prompt, "same", fixed) for prompt in range(n_prompts) for _ in range(n_calls)]
    wanted += [(index // n_calls, "different", seed) for index, seed in enumerate(others)]
    seeded = [wanted[index] for index in rng.permutation(len(wanted))]
    greedy = [(prompt, "greedy", None) for prompt in range(n_prompts) for _ in range(parameters.get("greedy_calls", 0))]
    return tuple(
        ProbeExchange(prompt=prompt, group=group, seed=seed, round=place // (2 * n_calls))
        for place, (prompt, group, seed) in enumerate([*seeded, *greedy])
    )


def _batch_calls(parameters: Mapping[str, Any], *, n_texts: int) -> tuple[ProbeExchange, ...]:
    """Copies of all prompts in random order, and in each round the load in between them at random places.

    Rounds with the most copies fill every seat, unless nothing is to load the engine; a probe that was asked for before
    there were seats has none to fill.
    """
    rng = np.random.default_rng(parameters["random_seed"])
    n_prompts = len(parameters["prompts"])
    copies = rng.permutation(np.repeat(np.arange(n_prompts), parameters["copies"])).tolist()
    load = cycle(range(n_prompts, n_texts))
    calls: list[ProbeExchange] = []
    for place, size in enumerate(_round_sizes(len(copies), is_alone=parameters["load"] == 0)):
        here = [ProbeExchange(prompt=copies.pop(), group="copy", round=place) for _ in range(size)]
        is_full = size == max(COPIES_A_ROUND) and parameters["load"] > 0
        n_load = max(parameters["load"], parameters.get("seats", 0) - size if is_full else 0)
        here += [ProbeExchange(prompt=next(load), group="load", round=place) for _ in range(n_load)]
        calls += [here[index] for index in rng.permutation(len(here))]
    return tuple(calls)


def _round_sizes(n_copies: int, *, is_alone: bool) -> list[int]:
    """Return the number of copies in each round. is_alone: no load, so a round has two copies or more."""
    sizes: list[int] = []
    wanted = cycle(size for size in COPIES_A_ROUND if size > 1 or not is_alone)
    while (left := n_copies - sum(sizes)) > 0:
        size = min(next(wanted), left)
        # One copy that would be left over goes with the others.
        sizes.append(left if is_alone and left - size == 1 else size)
    return sizes
