"""What the server answers, as commands and the client read it: `json` is the whole, with the fields of docs/api.md."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evalboard.core.draws import Draws

TERMINAL = ("finished", "incomplete", "failed", "cancelled")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What has an id and comes to an end, as the server gave it: `json` whole."""

    json: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.json["id"])

    @property
    def status(self) -> str:
        return str(self.json["status"])

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


class RunAnswer(Answer):
    """A run, and the parts of it that commands read."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"run {self.id}"

    @property
    def unit(self) -> str:
        return "responses"

    @property
    def url(self) -> str:
        return str(self.json["url"])

    @property
    def n_done(self) -> int:
        return int(self.json["progress"]["n_done"])

    @property
    def n_total(self) -> int:
        return int(self.json["progress"]["n_total"])

    @property
    def eta_seconds(self) -> float | None:
        eta = self.json["progress"]["eta_seconds"]
        return None if eta is None else float(eta)

    @property
    def range(self) -> tuple[float, float] | None:
        span = self.json["range"]
        return None if span is None else (float(span[0]), float(span[1]))

    @property
    def sampled(self) -> str:
        """How its tokens were drawn, "" where they were not: at temperature 0, or where a log does not say."""
        found = self.json["sampled"]
        return "" if found is None else Draws(found["temperature"], found["seed"], is_one=found["is_one_draw"]).words

    @property
    def warnings(self) -> list[str]:
        return [str(warning["text"]) for warning in self.json["warnings"]]

    @property
    def suite(self) -> str:
        return str(self.json["suite"]["slug"])

    @property
    def is_rough(self) -> bool:
        """Whether its profile batches cases as they come, so that it gives a lean and never a verdict."""
        return any(warning["code"] == "rough_profile" for warning in self.json["warnings"])


@dataclass(frozen=True, slots=True)
class ComparisonAnswer:
    """Two runs compared, and the parts of it that commands read."""

    json: Json

    @property
    def name(self) -> str:
        return f"comparison of {self.json['baseline']} and {self.json['candidate']}"

    @property
    def unit(self) -> str:
        return "pairs of traces"

    @property
    def status(self) -> str:
        return str(self.json["progress"]["status"])

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def n_done(self) -> int:
        return int(self.json["progress"]["n_done"])

    @property
    def n_total(self) -> int:
        return int(self.json["progress"]["n_total"])

    @property
    def eta_seconds(self) -> float | None:
        return None

    @property
    def error(self) -> str:
        return str(self.json["progress"]["error"] or "")

    @property
    def url(self) -> str:
        return str(self.json["url"])

    @property
    def is_comparable(self) -> bool:
        return bool(self.json["comparable"])

    @property
    def blocks(self) -> list[str]:
        return [str(block["text"]) for block in self.json["blocks"]]

    @property
    def difference(self) -> float | None:
        found = self.json["score"]["difference"]
        return None if found is None else float(found)

    @property
    def ledger(self) -> list[Json]:
        return list(self.json["ledger"])


class ReplayAnswer(Answer):
    """A replay, and the parts of it that commands read."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"replay {self.id}"

    @property
    def unit(self) -> str:
        return "variants"

    @property
    def n_done(self) -> int:
        return len(self.json["results"])

    @property
    def n_total(self) -> int:
        return len(self.json["variants"])

    @property
    def eta_seconds(self) -> float | None:
        return None  # one variant may be a start of the engine, the next one may not


class ProbeAnswer(Answer):
    """A probe, and the parts of it that commands read."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"probe {self.id}"

    @property
    def unit(self) -> str:
        return "calls"

    @property
    def n_done(self) -> int:
        return int(self.json["progress"]["n_done"])

    @property
    def n_total(self) -> int:
        return int(self.json["progress"]["n_total"])

    @property
    def eta_seconds(self) -> float | None:
        return None  # a start of the engine comes before the first call

    @property
    def finding(self) -> Json | None:
        found: Json | None = self.json["finding"]
        return found


@dataclass(frozen=True, slots=True)
class ReleaseAnswer:
    """A release, and the parts of its verdict that commands read."""

    json: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.json["id"])

    @property
    def verdict(self) -> str:
        return str(self.json["verdict"])

    @property
    def summary(self) -> str:
        return str(self.json["summary"])

    @property
    def url(self) -> str:
        return str(self.json["url"])

    @property
    def gates(self) -> list[dict[str, Any]]:
        return list(self.json["gates"])

    @property
    def warnings(self) -> list[str]:
        return [str(warning["text"]) for warning in self.json["warnings"]]

    @property
    def next_steps(self) -> list[str]:
        return [str(step["text"]) for step in self.json["next"]]


@dataclass(frozen=True, slots=True)
class SuiteAnswer:
    """A suite version; `is_new` is False where the server had the same content already."""

    json: dict[str, Any]
    is_new: bool


@dataclass(frozen=True, slots=True)
class ImportAnswer:
    """A log that was read; `is_new` is False where the server had read the same one before."""

    json: dict[str, Any]
    is_new: bool

    @property
    def runs(self) -> list[RunAnswer]:
        """As lists have them: with fewer fields than a run by itself."""
        return [RunAnswer(run) for run in self.json["runs"]]


@dataclass(frozen=True, slots=True)
class Download:
    """A file as it comes; n_rows: how many rows it must have, None where that is not said."""

    parts: Iterator[bytes]
    n_rows: int | None
