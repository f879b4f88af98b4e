"""Sentences of an audit: whether equal input gave equal output on every worker (docs/probes.md)."""

from collections.abc import Mapping
from typing import Any

from evalboard.wording.numbers import counted, percent

Numbers = Mapping[str, Any]


def describe_identical(numbers: Numbers) -> str:
    """Say that all answers are equal, how many comparisons that was, and the rate it rules out."""
    share = percent(numbers["certificate"], 1)
    n = numbers["n_held_earlier"]
    before = f", {n:,} of them also to the audit before" if n else ""
    comparisons = counted(numbers["n_held"], "comparison")
    limit = f"With 95 % confidence at most {share} would differ ({comparisons})"
    return f"Identical: {_answers(numbers)} are equal to the bit{before}. {limit}."


def describe_differs(numbers: Numbers) -> str:
    """Say how many incidents there are, and the first with its evidence."""
    first = next(row for row in numbers["incidents"] if row["is_same_stack"])
    n = counted(numbers["n_incidents"], "incident")
    return f"{n} in {_answers(numbers)}. First incident: {describe_incident(first)}"


def describe_stacks_differ(numbers: Numbers) -> str:
    """Say that several stacks serve the pool, and answer unlike."""
    n, stacks = counted(numbers["n_across"], "case"), numbers["n_stacks"]
    text = f"Stacks differ: {stacks} serving stacks gave different answers to {n}"
    return f"{text}. Workers of one stack agree. The first: {describe_incident(numbers['incidents'][0])}"


def describe_nothing_held(numbers: Numbers) -> str:
    """Say that there are no earlier answers to compare with yet."""
    return f"First audit: {_answers(numbers)} are stored, and the next audit is compared with them."


def describe_incident(row: Mapping[str, Any]) -> str:
    """Describe an incident: which workers answered which case differently, from where on, and when."""
    against = row["against"]
    before = " in the audit before" if against["is_earlier"] else ""
    otherwise = f"differently than {name_worker(against)}{before}{_at(against)}"
    return f"{name_worker(row)}{_at(row)} answered {name_case(row)} {otherwise}, {describe_place(row)}."


def describe_place(row: Mapping[str, Any]) -> str:
    """Say what differs, and from where on; tokens are counted from 0."""
    if row["position"] is None:
        return "by logprobs of tokens that were not chosen"
    return f"{'' if row['what'] == 'tokens' else 'by logprobs alone, '}from token {row['position']} on"


def name_worker(row: Mapping[str, Any]) -> str:
    """Return the worker's name with its host, as far as known."""
    name, host = row.get("name"), row.get("host")
    return f"{name} on {host}" if name else f"worker {row['worker']}"


def name_case(row: Mapping[str, Any]) -> str:
    """Return the case by its id, or the prompt by its number, from 1."""
    return f"case {row['case']}" if row.get("case") else f"prompt {row['prompt'] + 1}"


def _at(row: Mapping[str, Any]) -> str:
    return f" ({row['at'][:16].replace('T', ' ')} UTC)" if row["at"] else ""


def _answers(numbers: Numbers) -> str:
    n = numbers["n_calls"] - numbers["n_failed"]
    workers = counted(len(numbers["workers"]), "worker")
    return f"{counted(n, 'answer')} of {workers} to {counted(numbers['n_cases'], 'case')}"
