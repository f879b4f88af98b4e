"""The inputs of a release's verdict: columns, scores, serving facts, and expired baselines.

`find` takes the same few queries for any size of run, so that a valid verdict is recognised in milliseconds; `load`
reads one gate's columns.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

import numpy as np
from django.db.models import Count, Q
from numpy.typing import NDArray

from evalboard.contract.run import Draws
from evalboard.contract.treatments import BY_INPUT, MODEL_TREATMENT
from evalboard.core import digest
from evalboard.core.errors import Conflict
from evalboard.core.release import VERDICT_RULES, DecodedSide, GateEvidence, GateQuestion, VerdictLine
from evalboard.core.stats import EarlierNoise
from evalboard.core.suite import parse_policy
from evalboard.core.trace import NOTABLE
from runs.catalogue import expiry
from runs.compare import ComparisonInputs, SideKey, StoredSide
from runs.compare import inputs as comparison_inputs
from runs.models import Case, GateRecord, ReleaseRecord, RepeatRecord, ResponseRecord, Rotation, RunRecord
from runs.pairs import pair_facts
from runs.release.loads import read_loads
from runs.release.targeted import TargetedInputs, choose_cases, find_earlier, find_targeted, measure_early_noise
from runs.release.window import Canaries, find_canaries, read_window
from runs.store import PROMPT_FILTERED, stored_columns
from runs.work import NEEDS_CERTIFICATE, Served, find_certified

logger = logging.getLogger(__name__)

RUN = ("suite_version__suite", "suite_version__scorer", "endpoint", "profile", "bucket__model", "bucket__fingerprint")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideInputs:
    """One side of a gate. `places`: of the repeats that are judged, in the order of `key`.

    certified: hosts that decoded under batch-invariant kernels and have a certificate. served: without its buckets.
    """

    run: RunRecord
    key: SideKey
    places: tuple[int, ...]
    certified: tuple[str, ...]
    served: DecodedSide

    @property
    def judged_ids(self) -> list[int]:
        """Return the repeats that are judged, in the order of `places`."""
        return [self.key.repeat_ids[at] for at in self.places]


@dataclass(frozen=True, slots=True)
class GateInputs:
    """One gate with its inputs. expired: the rotation that ended its baseline, or None.

    comparison_digest: of the inputs of its comparison. targeted: the repeats of chosen cases that both runs have, which
    the comparison leaves out. canaries: findings of canary probes of external servers while both sides ran. earlier:
    before the first checkpoint, `find_earlier` by side.
    """

    gate: GateRecord
    baseline: SideInputs
    candidate: SideInputs
    expired: Rotation | None
    comparison_digest: str
    targeted: TargetedInputs | None
    canaries: Canaries
    earlier: tuple[dict[int, str], dict[int, str]]


@dataclass(frozen=True, slots=True)
class ReleaseInputs:
    """A release's gates in their order."""

    release: ReleaseRecord
    gates: tuple[GateInputs, ...]

    @property
    def input_digest(self) -> str:
        """Return the digest of all inputs of a verdict by today's rules."""
        return self.digest_by(VERDICT_RULES)

    def digest_by(self, rules: str) -> str:
        """Return the same for a verdict by the rules that its document names."""
        policy = self.release.policy
        return digest.digest_json(
            {
                "method": rules,
                "policy": {"slug": policy.slug, "version": policy.version, "digest": policy.digest},
                "treatment": self.release.treatment,
                **({"pair_by": self.release.pair_by} if self.release.pair_by != BY_INPUT else {}),
                **({"nothing_caches": True} if self.release.nothing_caches else {}),
                "gates": [
                    {
                        "tier": each.gate.tier,
                        "baseline": _side_digests(each.baseline),
                        "candidate": _side_digests(each.candidate),
                        "expired": None if each.expired is None else each.expired.pk,
                        **({} if each.targeted is None else {"targeted": each.targeted.digests}),
                        **({"canaries": each.canaries} if each.canaries else {}),
                        **({"earlier": [list(side.values()) for side in each.earlier]} if any(each.earlier) else {}),
                    }
                    for each in self.gates
                ],
            }
        )


def read_release_gates(*releases: ReleaseRecord | int) -> list[GateRecord]:
    """Return the gates in order, with all that is read of their runs, which are shared.

    The runs come by a query of their own: PostgreSQL plans a query that joins everything of both sides for longer
    than it executes it.
    """
    gates = list(GateRecord.objects.filter(release__in=releases).select_related("suite").order_by("position"))
    wanted = {run_id for gate in gates for run_id in (gate.baseline_run_id, gate.candidate_run_id)}
    runs = RunRecord.objects.select_related(*RUN).defer("bucket__model__files").in_bulk(wanted)
    for gate in gates:
        gate.baseline_run, gate.candidate_run = runs[gate.baseline_run_id], runs[gate.candidate_run_id]
    return gates


def find(release: ReleaseRecord, gates: Sequence[GateRecord]) -> ReleaseInputs:
    """Return the present inputs of a verdict on these gates.

    Raises Conflict if a run has no ended repeat, InvalidInput if two runs are of two suites.
    """
    keys = comparison_inputs.find_pairs(
        [(gate.baseline_run, gate.candidate_run) for gate in gates],
        terms=release.terms,
        judged_before=release.created_at,
    )
    facts = _Facts({repeat for *sides, _ in keys for key in sides for repeat in key.repeat_ids})
    expired, targeted, canaries = expiry.expired(gates), find_targeted(gates), find_canaries(gates)
    first_look = parse_policy(release.policy.settings).looks[0]
    inputs = []
    for gate, (ours, theirs, comparison_digest) in zip(gates, keys, strict=True):
        sides = facts.side(gate.baseline_run, ours), facts.side(gate.candidate_run, theirs)
        is_early = min(len(side.places) for side in sides) < first_look and release.treatment == MODEL_TREATMENT
        inputs.append(
            GateInputs(
                gate,
                *sides,
                expired.get(gate.pk),
                comparison_digest,
                targeted.get(gate.pk),
                canaries.get(gate.pk, ()),
                (find_earlier(ours.run, ours.scorer), find_earlier(theirs.run, theirs.scorer))
                if is_early
                else ({}, {}),
            )
        )
    return ReleaseInputs(release, tuple(inputs))


def load(gate: GateInputs, release: ReleaseRecord, history: tuple[VerdictLine, ...]) -> GateEvidence:
    """Return a gate's evidence, reading its columns.

    Raises InvalidInput if no case is shared, Conflict if a column or score is not the one of its digest.
    """
    _refuse_changed_columns(gate)
    inputs = comparison_inputs.load(gate.baseline.key, gate.candidate.key, release.terms)
    sides = (("baseline", inputs.baseline), ("candidate", inputs.candidate))
    version = gate.baseline.run.suite_version_id
    loads = read_loads(gate.gate, gate.baseline.judged_ids, gate.candidate.judged_ids)
    cases = list(Case.objects.filter(suite_version=version).order_by("index").values_list("case_id", "group"))
    filtered = _find_filtered(gate.baseline, inputs.baseline), _find_filtered(gate.candidate, inputs.candidate)
    judged = ~(filtered[0] & filtered[1])
    if gate.targeted is not None:  # whose scores are of all cases
        judged[:] = True
    noisiest = choose_cases(gate.baseline.run, gate.candidate.run)
    shared = inputs.baseline.case_indexes[judged].tolist()
    window = read_window(gate.gate, gate.baseline.judged_ids, gate.candidate.judged_ids)
    early = [
        measure_early_noise(side.run, known, columns.case_indexes[judged]) if any(gate.earlier) else EarlierNoise()
        for side, known, (_, columns) in zip((gate.baseline, gate.candidate), gate.earlier, sides, strict=True)
    ]
    question = GateQuestion(
        case_ids=[cases[index][0] for index in shared],
        groups=[cases[index][1] for index in shared],
        baseline=inputs.baseline.scores[judged][:, gate.baseline.places],
        candidate=inputs.candidate.scores[judged][:, gate.candidate.places],
        draws_baseline=_draws(gate.baseline),
        draws_candidate=_draws(gate.candidate),
        marks_baseline=_marks(inputs.baseline, release)[judged][:, gate.baseline.places],
        marks_candidate=_marks(inputs.candidate, release)[judged][:, gate.candidate.places],
        assumed=[name for name, side in sides if release.nothing_caches and side.effective.is_one_answer],
        independent=[name for name, side in sides if side.usual is not None],
        one_answer=[name for name, side in sides if side.effective.is_one_answer],
        first_differs=[name for name, side in sides if side.effective.does_first_differ],
        loads_baseline=loads.baseline,
        loads_candidate=loads.candidate,
        loads_counted=loads.counted,
        is_in_turn=window.is_in_turn,
        are_apart=window.are_apart,
        span_hours=window.hours,
        canaries=gate.canaries,
        setup_baseline=inputs.baseline.setup,
        setup_candidate=inputs.candidate.setup,
        treatment=release.treatment,
        prompts=None if inputs.prompts is None else inputs.prompts.counts,
        computation=_judge_computation(inputs, release.treatment),
        expired=None if gate.expired is None else _expired_facts(gate.baseline, gate.expired),
        noisiest=None if noisiest is None else noisiest[judged],
        targeted=None if gate.targeted is None else gate.targeted.load(len(shared)),
        uncertified=_uncertified(gate),
        early_baseline=early[0],
        early_candidate=early[1],
    )
    return GateEvidence(
        tier=gate.gate.tier,
        suite_name=gate.gate.suite.slug,
        question=question,
        baseline=_served(gate.baseline, inputs.baseline, inputs, filtered[0], filtered[1]),
        candidate=_served(gate.candidate, inputs.candidate, inputs, filtered[1], filtered[0]),
        history=history,
    )


def _refuse_changed_columns(gate: GateInputs) -> None:
    """Raise Conflict where a verdict's input digest would not cover what is judged."""
    for side in (gate.baseline, gate.candidate):
        if changed := stored_columns.find_changed(side.judged_ids):
            repeats = ", ".join(str(side.key.repeats[side.key.repeat_ids.index(each)]) for each in changed)
            logger.error("columns_changed run=%s repeats=%s", side.run.pk, repeats)
            raise Conflict(
                f"Run {side.run.pk} cannot be judged: answers or scores of its repeats {repeats} were changed in the "
                "database. Restore them from a backup, or run it again."
            )


def _judge_computation(inputs: ComparisonInputs, treatment: str) -> dict[str, Any] | None:
    """Return how the sides' logprobs differ if one bucket answered both; None if they agree."""
    buckets = {*inputs.baseline.bucket_ids, *inputs.candidate.bucket_ids}
    if treatment != MODEL_TREATMENT or len(buckets) != 1:
        return None
    judged = inputs.judge_computation()
    return judged if judged["answer"] == "two" else None


def _marks(side: StoredSide, release: ReleaseRecord) -> NDArray[np.uint8]:
    """Return the marks of a side's answers, ignoring inferred copies if nothing caches by declaration."""
    is_assumed = release.nothing_caches and side.effective.is_one_answer
    return side.marks if is_assumed else side.effective.marks


def _served(
    side: SideInputs,
    columns: StoredSide,
    inputs: ComparisonInputs,
    filtered: NDArray[np.bool_],
    others: NDArray[np.bool_],
) -> DecodedSide:
    """Return how a side was decoded. filtered, others: bool[n_cases], refused prompts of either side."""
    return replace(
        side.served,
        buckets=_buckets(columns),
        n_answers=int(np.count_nonzero(~np.isnan(columns.scores[:, side.places]))),
        n_filtered=int(np.count_nonzero(filtered & ~others)),
        n_filtered_on_both=int(np.count_nonzero(filtered & others)),
    )


def _buckets(side: StoredSide) -> list[list[Any]]:
    """Return the buckets of a side for DecodedSide."""
    rows = []
    for (bucket_id, _, _), served in zip(side.shares, side.setup.served, strict=True):
        scores = side.scores[(side.buckets == bucket_id) & ~np.isnan(side.scores)]
        points = 100 * float(scores.mean()) if len(scores) else None
        rows.append([float(served.share), served.backend, served.batch_class, points])
    return rows


def _find_filtered(side: SideInputs, columns: StoredSide) -> NDArray[np.bool_]:
    """Return bool[n_cases], by the rows of the columns: the prompts that the provider's filter refused."""
    filtered = ResponseRecord.objects.filter(repeat__in=side.judged_ids, error_code=PROMPT_FILTERED).order_by()
    indexes = list(filtered.values_list("case_index", flat=True).distinct())
    return np.asarray(np.isin(columns.case_indexes, indexes))


class _Facts:
    """Facts of many repeats from outside their columns, read at once."""

    def __init__(self, repeat_ids: set[int]) -> None:
        self._n_unvouched, self._n_truncated = Counter[int](), Counter[int]()
        self._n_by_ending: dict[int, Counter[str]] = defaultdict(Counter)
        is_unvouched, is_truncated = Q(is_vouched=False), Q(is_truncated=True)
        marked = ResponseRecord.objects.filter(
            is_unvouched | is_truncated | Q(ending__in=NOTABLE), repeat__in=repeat_ids
        )
        counts = {
            "n": Count("pk"),
            "unvouched": Count("pk", filter=is_unvouched),
            "truncated": Count("pk", filter=is_truncated),
        }
        rows = marked.order_by().values("repeat", "ending").annotate(**counts)
        for repeat, ending, n, n_unvouched, n_truncated in rows.values_list("repeat", "ending", *counts):
            self._n_unvouched[repeat] += n_unvouched
            self._n_truncated[repeat] += n_truncated
            if ending in NOTABLE:
                self._n_by_ending[repeat][ending] = n
        links = RepeatRecord.engine_processes.through.objects.filter(repeat__in=repeat_ids)
        self._processes: dict[int, dict[int, Any]] = defaultdict(dict)
        self._invariant: dict[int, Served] = {}
        names = ("pins", "worker__host", "bucket", "bucket__batch_class")
        columns = [f"engineprocess__{name}" for name in names]
        for repeat, process, pins, host, bucket, batch_class in links.values_list("repeat", "engineprocess", *columns):
            self._processes[repeat][process] = pins
            if batch_class == NEEDS_CERTIFICATE:
                self._invariant[process] = (host, bucket)
        self._certified = find_certified(set(self._invariant.values()))

    def side(self, run: RunRecord, key: SideKey) -> SideInputs:
        places = tuple(at for at, repeat in enumerate(key.repeat_ids) if repeat not in key.unscored_ids)
        judged = [key.repeat_ids[at] for at in places]
        processes = {process: pins for repeat in judged for process, pins in self._processes[repeat].items()}
        broken = {pin["name"] for pins in processes.values() for pin in pins if not pin["held"]}
        served = {self._invariant[process] for process in processes if process in self._invariant}
        uncertified = {host for host, _ in served - self._certified}
        return SideInputs(
            run=run,
            key=key,
            places=places,
            certified=tuple(sorted({host for host, _ in served} - uncertified)),
            served=DecodedSide(
                run=run.pk,
                n_repeats=len(places),
                n_left_out=len(key.repeat_ids) - len(places),
                n_unvouched=sum(self._n_unvouched[repeat] for repeat in judged),
                n_truncated=sum(self._n_truncated[repeat] for repeat in judged),
                n_by_ending=sum((self._n_by_ending[repeat] for repeat in judged), Counter()),
                n_processes=len(processes),
                broken_pins=tuple(sorted(broken)),
                uncertified=tuple(sorted(uncertified)),
                strays=run.strays or (),
                unsteady=run.unsteady or (),
                not_greedy=pair_facts.count_not_greedy(run),
                is_log=run.is_log,
                is_reported=run.is_reported,
                is_read=run.source_id is not None,
            ),
        )


def _uncertified(gate: GateInputs) -> list[dict[str, Any]]:
    return [
        {
            "side": name,
            "hosts": list(side.served.uncertified),
            "endpoint": side.run.endpoint.slug,
            "profile": side.run.profile.slug,
        }
        for name, side in (("baseline", gate.baseline), ("candidate", gate.candidate))
        if side.served.uncertified
    ]


def _draws(side: SideInputs) -> Draws:
    return pair_facts.draws_of(side.run, (side.key.repeats[at] for at in side.places))


def _side_digests(side: SideInputs) -> dict[str, Any]:
    """Return the digests of one side's judged repeats."""
    known = side.key.digests
    judged = {side.key.repeats[at] for at in side.places}
    columns = {index: value for index, value in known["columns"].items() if int(index) in judged}
    scores = {name: value for name, value in known["scores"].items() if int(name.partition(" ")[0]) in judged}
    evidence = {name: getattr(side.served, name) for name in ("n_unvouched", "broken_pins", "n_processes")}
    # Certificates and not their lack, so that verdicts from before there were any still rest on what they rested on.
    certified = {"certified": side.certified} if side.certified else {}
    return {**known, "columns": columns, "scores": scores, **evidence, **certified}


def _expired_facts(baseline: SideInputs, rotation: Rotation) -> dict[str, Any]:
    return {
        "baseline": baseline.run.pk,
        "expired_at": f"{rotation.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        **({"first_run": rotation.run_id} if rotation.probe_id is None else {"first_probe": rotation.probe_id}),
        "endpoint": str(rotation.endpoint),
        "profile": rotation.profile_slug,
    }
