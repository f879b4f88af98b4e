"""Verify that an endpoint serves a reference's weights, by scorings of known origin."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from django.urls import reverse

from evalboard.contract import verification as contract
from evalboard.contract.base import Note
from evalboard.core.errors import Conflict, NotFound
from evalboard.core.forced import ForcedPositions, choose_statistic, verify_endpoint
from evalboard.wording.verification import describe_verification, warn_of_verification
from runs.forced.figures import read_positions
from runs.models import ForcedAnswerRecord, ForcedScoringRecord
from runs.pairs import draws_of

# Per scoring. It is read within a request, and a few thousand tokens are enough (docs/forced.md).
MAX_ANSWERS = 2_000
MAX_POSITIONS = 200_000

Scorings = Mapping[str, ForcedScoringRecord]  # by what they are in a verification


def verify_scoring(
    scoring_id: int, *, control: int, numerics: Sequence[int], planted: int | None = None
) -> contract.Verification:
    """Judge a forced scoring by scorings of known origin, all given by id.

    Raises NotFound; Conflict if one has not finished, they are of several buckets, two are of one run, only some of the
    runs were decoded at temperature 0, or a known one has no token with the statistic.
    """
    honest = {f"numerics {place}" if place else "numerics": each for place, each in enumerate(numerics)}
    ids = {"endpoint": scoring_id, "control": control, **honest}
    scorings = _read(ids if planted is None else {**ids, "planted": planted})
    _refuse_unlike(scorings)
    positions = {
        name: read_positions(scoring.pk, max_answers=MAX_ANSWERS, max_positions=MAX_POSITIONS)[1]
        for name, scoring in scorings.items()
    }
    _refuse_unknown(scorings, positions)
    judged = verify_endpoint(
        positions["endpoint"],
        control=positions["control"],
        numerics=[positions[name] for name in honest],
        planted=positions.get("planted"),
    )
    banded = {name: scoring for name, scoring in scorings.items() if name not in honest}
    banded["numerics"] = scorings[list(honest)[judged.numerics_place]]
    bands = {name: _band(scoring, getattr(judged, name)) for name, scoring in banded.items()}
    return contract.Verification(
        **dict(judged) | bands,
        bucket=str(scorings["control"].bucket_id),
        sentence=describe_verification(judged),
        warnings=tuple(
            Note(code=code, text=warn_of_verification(code, n)) for code, n in _warnings(scorings, positions)
        ),
        url=reverse("forced", args=[scoring_id]),
    )


def _read(ids: Mapping[str, int]) -> Scorings:
    stored = ForcedScoringRecord.objects.select_related("run__profile").in_bulk(list(ids.values()))
    for scoring_id in ids.values():
        if scoring_id not in stored:
            raise NotFound(f"There is no forced scoring {scoring_id}.")
    return {name: stored[scoring_id] for name, scoring_id in ids.items()}


def _refuse_unlike(scorings: Scorings) -> None:
    for scoring in scorings.values():
        if scoring.is_reported:
            raise Conflict(
                f"Forced scoring {scoring.pk} came from a trainer, on an unknown stack. Score the run on an "
                "endpoint of your own."
            )
        if scoring.status != ForcedScoringRecord.Status.FINISHED:
            raise Conflict(f"Forced scoring {scoring.pk} is {scoring.status}; only finished ones are held together.")
    control = scorings["control"]
    owners: dict[int, str] = {}
    for name, scoring in scorings.items():
        if scoring.figures is None:
            raise Conflict(
                f"Several buckets gave the answers of forced scoring {scoring.pk}, so it cannot say whose weights they "
                "are of. Its page has the numbers of each bucket."
            )
        if scoring.bucket_id != control.bucket_id:
            raise Conflict(
                f"Forced scorings {scoring.pk} and {control.pk} are of two buckets. Score each run on the same "
                "endpoint under the same profile. If that was done, its stack has changed since: score them again."
            )
        if scoring.run_id in owners:
            raise Conflict(f"Run {scoring.run_id} is given as {owners[scoring.run_id]} and as {name}.")
        owners[scoring.run_id] = name
    drawn = {name for name, scoring in scorings.items() if draws_of(scoring.run).may_sample}
    if 0 < len(drawn) < len(scorings):
        raise Conflict(
            "Some of the runs were decoded at temperature 0. Others were not, or their temperature is unknown. Sampled "
            "answers differ more for that reason alone. Use only runs decoded at temperature 0, or none."
        )


def _refuse_unknown(scorings: Scorings, positions: Mapping[str, ForcedPositions]) -> None:
    """Raise Conflict if answers of known origin have no token with the endpoint's statistic."""
    statistic = choose_statistic(positions["endpoint"])
    for name, known in positions.items():
        values = known.gaps if statistic == "gap" else known.deficits
        if name != "endpoint" and np.isnan(values).all():
            raise Conflict(
                f"No token of forced scoring {scorings[name].pk} ({name}) has a {statistic}, by which the endpoint is "
                "judged."
            )


def _warnings(scorings: Scorings, positions: Mapping[str, ForcedPositions]) -> Iterator[tuple[str, int]]:
    """Yield the codes of limitations, each with the number of affected answers or prompts."""
    control, endpoint = scorings["control"], scorings["endpoint"]
    if control.run.bucket_id != control.bucket_id:
        yield "control_of_other_bucket", 0
    scored = ForcedAnswerRecord.objects.filter(error_code="")
    if n_rendered := scored.filter(scoring=endpoint, is_rendered=True).count():
        yield "rendered", n_rendered
    for name, scoring in scorings.items():
        n_read = positions[name].n_responses
        if n_read < scored.filter(scoring=scoring).count():
            yield "first_answers", n_read
            return


def _band(scoring: ForcedScoringRecord, band: contract.Band | None) -> contract.VerificationBand | None:
    if band is None:
        return None
    return contract.VerificationBand(**dict(band), forced=str(scoring.pk), run=str(scoring.run_id))
