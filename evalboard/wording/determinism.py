"""Sentences of a determinism probe: what a node gave, and under which conditions (docs/probes.md)."""

from collections.abc import Mapping
from typing import Any

from evalboard.wording.numbers import counted, percent

Numbers = Mapping[str, Any]

# How the other requests of a condition are said, after how many share a step.
CONDITIONS = {
    "none": "",
    "short": ", with short prompts",
    "long": ", with long prompts",
    "queued": ", with more requests waiting",
}


def describe_certified(numbers: Numbers) -> str:
    """Say what is certified, and what rate that rules out."""
    rows = [row for row in numbers["workers"] if row["is_certified"]]
    same = f"every prompt gave the same bits under all {counted(numbers['n_conditions'], 'condition')}"
    share, rounds = percent(numbers["certificate"], 1), counted(numbers["n_rounds"], "round")
    limit = f"With 95 % confidence, answers differ in at most {share} of rounds ({rounds} tried)"
    where = f"{_seats(numbers)} on {counted(len(rows), 'worker')}"
    return f"Certified at {where}: {same}. {limit}.{_covers(numbers)}{_left(numbers)}"


def describe_not_certified(numbers: Numbers) -> str:
    """Say how many answers changed, and the first condition that changed any."""
    name, start = ("texts", "Answers move") if any(_moved(numbers, "texts")) else ("bits", "Same texts, other logprobs")
    moved = [row for row in numbers["workers"] if row[f"n_{name}_moved"]]
    [first, *_] = [row for row in moved[0]["conditions"] if row[f"n_{name}_moved"]]
    n, n_copies = sum(_moved(numbers, name)), sum(c["n_copies"] for row in moved for c in row["conditions"])
    what = "another text" if name == "texts" else "other logprobs"
    answers = f"{n:,} of {n_copies:,} answers of {counted(len(moved), 'worker')}"
    copies = f"{answers} had {what} than the first answer to their prompt"
    return f"{start}: {copies}. First seen {describe_condition(first)}.{_covers(numbers)}{_left(numbers)}"


def describe_condition(row: Mapping[str, Any]) -> str:
    """Describe a load condition: how many share a step, and how long the other prompts are."""
    seats = "at batch size 1" if row["seats"] == 1 else f"at batch size {row['seats']}"
    return f"{seats}{CONDITIONS[row['load']]}"


def _moved(numbers: Numbers, name: str) -> list[int]:
    return [row[f"n_{name}_moved"] for row in numbers["workers"]]


def _seats(numbers: Numbers) -> str:
    reached, seats = numbers["seats_reached"], numbers["seats"]
    if reached == 1:
        return "batch size 1"
    return f"batch sizes 1 to {reached}{'' if reached >= seats else f' of {seats}, as no batch was larger'}"


def _covers(numbers: Numbers) -> str:
    """Say which weights and devices a certificate covers."""
    covers = numbers.get("covers")
    if covers is None:
        return ""
    weights = f"quantised by {covers['quantization']}" if covers["quantization"] else "not quantised"
    n = covers["n_devices"]
    devices = "on one device" if n == 1 else f"over {n} devices" if n else "on an unknown number of devices"
    return f" It covers only {covers['model']} in {covers['dtype']}, {weights}, {devices}."


def _left(numbers: Numbers) -> str:
    n = len(numbers.get("left_out", ()))
    return f" {counted(n, 'worker')} {'was' if n == 1 else 'were'} stopped before the end." if n else ""
