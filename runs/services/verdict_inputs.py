"""What a release's verdict rests on: its gates' columns and scores, what served them, and whether a baseline expired.

`find` costs the same few queries for any size of run, so that a verdict that still holds is known in milliseconds;
`load` reads one gate's columns.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db.models import Count

from evalboard.core import digest, verdict
from evalboard.core.draws import Draws
from evalboard.core.verdict import Question
from runs import expiry, pair_facts
from runs.models import Case, Gate, Release, Repeat, Response, Rotation, Run
from runs.services import comparison_inputs
from runs.services.comparison_inputs import Inputs, SideKey

# Their responses were not left out by the engine: a person stopped them, or no engine started.
LEFT_OUT = (Repeat.Status.CANCELLED, Repeat.Status.FAILED)
RUN = ("suite_version__suite", "suite_version__scorer", "endpoint", "profile", "bucket__model", "bucket__fingerprint")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFound:
    """One side of a gate. `places`: of the repeats that are judged, in the order of `key`; `n_left_out` of the others.

    n_processes: engine processes that decoded them. broken_pins: names, each once. n_unvouched: responses.
    """

    run: Run
    key: SideKey
    places: tuple[int, ...]
    n_left_out: int
    n_unvouched: int
    n_processes: int
    broken_pins: tuple[str, ...]

    @property
    def n_repeats(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True)
class GateFound:
    """One gate, `expired` by a rotation or None."""

    gate: Gate
    baseline: SideFound
    candidate: SideFound
    expired: Rotation | None


@dataclass(frozen=True, slots=True)
class Found:
    """A release's gates in their order."""

    release: Release
    gates: tuple[GateFound, ...]

    @property
    def input_digest(self) -> str:
        """The digest of everything that a verdict by today's rules rests on."""
        return self.digest_by(verdict.RULES)

    def digest_by(self, rules: str) -> str:
        """The same for a verdict by the rules that its document names."""
        policy = self.release.policy
        return digest.digest_json(
            {
                "method": rules,
                "policy": {"slug": policy.slug, "version": policy.version, "digest": policy.digest},
                "treatment": self.release.treatment,
                "gates": [
                    {
                        "tier": found.gate.tier,
                        "baseline": _side_digests(found.baseline),
                        "candidate": _side_digests(found.candidate),
                        "expired": None if found.expired is None else found.expired.pk,
                    }
                    for found in self.gates
                ],
            }
        )


def gates_of(release: Release) -> list[Gate]:
    """In the order asked for, with all that is read of their runs."""
    sides = tuple(f"{side}__{name}" for side in ("baseline_run", "candidate_run") for name in RUN)
    heavy = tuple(f"{side}__bucket__model__files" for side in ("baseline_run", "candidate_run"))
    found = Gate.objects.filter(release=release).select_related("suite", *sides).defer(*heavy)
    return list(found.order_by("position"))


def find(release: Release, gates: Sequence[Gate]) -> Found:
    """Raises Conflict where a run has no repeat that has ended, InvalidInput where two runs are of two suites."""
    keys = [
        comparison_inputs.find(baseline=gate.baseline_run_id, candidate=gate.candidate_run_id, repeats=None)[:2]
        for gate in gates
    ]
    repeat_ids = {repeat for pair in keys for key in pair for repeat in key.repeat_ids}
    facts = _Facts(repeat_ids)
    expired = expiry.expired(gates)
    found = tuple(
        GateFound(
            gate,
            facts.side(gate.baseline_run, ours),
            facts.side(gate.candidate_run, theirs),
            expired.get(gate.pk),
        )
        for gate, (ours, theirs) in zip(gates, keys, strict=True)
    )
    return Found(release, found)


def load(found: GateFound, treatment: str) -> tuple[Question, Inputs]:
    """Read the columns of a gate's two runs and ask the question. Raises InvalidInput where no case is shared."""
    inputs = comparison_inputs.load(found.baseline.key, found.candidate.key)
    version = found.baseline.run.suite_version_id
    cases = list(Case.objects.filter(suite_version=version).order_by("index").values_list("case_id", "group"))
    shared = inputs.baseline.case_indexes.tolist()
    question = Question(
        case_ids=[cases[index][0] for index in shared],
        groups=[cases[index][1] for index in shared],
        baseline=inputs.baseline.scores[:, found.baseline.places],
        candidate=inputs.candidate.scores[:, found.candidate.places],
        draws_baseline=_draws(found.baseline),
        draws_candidate=_draws(found.candidate),
        marks_baseline=inputs.baseline.marks[:, found.baseline.places],
        marks_candidate=inputs.candidate.marks[:, found.candidate.places],
        asked_baseline=inputs.baseline.asked,
        asked_candidate=inputs.candidate.asked,
        treatment=treatment,
        is_baseline_expired=_expired_words(found),
    )
    return question, inputs


class _Facts:
    """What is known of many repeats beside their columns, read at once."""

    def __init__(self, repeat_ids: set[int]) -> None:
        rows = Repeat.objects.filter(pk__in=repeat_ids, status__in=LEFT_OUT)
        self._left_out = set(rows.values_list("pk", flat=True))
        unvouched = Response.objects.filter(repeat__in=repeat_ids, is_vouched=False).values("repeat").order_by()
        self._n_unvouched = Counter(dict(unvouched.annotate(n=Count("pk")).values_list("repeat", "n")))
        links = Repeat.engine_processes.through.objects.filter(repeat__in=repeat_ids)
        self._processes: dict[int, dict[int, Any]] = defaultdict(dict)
        for repeat, process, pins in links.values_list("repeat", "engineprocess", "engineprocess__pins"):
            self._processes[repeat][process] = pins

    def side(self, run: Run, key: SideKey) -> SideFound:
        places = tuple(at for at, repeat in enumerate(key.repeat_ids) if repeat not in self._left_out)
        judged = [key.repeat_ids[at] for at in places]
        processes = {process: pins for repeat in judged for process, pins in self._processes[repeat].items()}
        broken = {pin["name"] for pins in processes.values() for pin in pins if not pin["held"]}
        return SideFound(
            run=run,
            key=key,
            places=places,
            n_left_out=len(key.repeat_ids) - len(places),
            n_unvouched=sum(self._n_unvouched[repeat] for repeat in judged),
            n_processes=len(processes),
            broken_pins=tuple(sorted(broken)),
        )


def _draws(side: SideFound) -> Draws:
    return pair_facts.draws_of(side.run, (side.key.repeats[at] for at in side.places))


def _side_digests(side: SideFound) -> dict[str, Any]:
    """What enters of one side: a repeat that is left out changes nothing by ending."""
    known = side.key.digests
    judged = {side.key.repeats[at] for at in side.places}
    columns = {index: value for index, value in known["columns"].items() if int(index) in judged}
    scores = {name: value for name, value in known["scores"].items() if int(name.partition(" ")[0]) in judged}
    evidence = {"n_unvouched": side.n_unvouched, "broken_pins": side.broken_pins, "n_processes": side.n_processes}
    return {**known, "columns": columns, "scores": scores, **evidence}


def _expired_words(found: GateFound) -> str:
    rotation = found.expired
    if rotation is None:
        return ""
    at = f"{rotation.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    text = f"The baseline, run {found.baseline.run.pk}, expired on {at}: from run {rotation.run_id} on another stack"
    return f"{text} serves {rotation.endpoint} under {rotation.profile_slug}. Run the baseline again."
