"""What is kept of a comparison beside its differing pairs: the summary, as JSON.

Shape, version 2. Points, nats and positions as everywhere; null is "not known"; `cases` are case indexes.
`noise` is that between the buckets that served most of each side, null where nothing differs.

    {"version", "counts": {"n_pairs", "identical", "drift_only", "flipped", "text_only", "missing", "unread",
                           "score_changed", "flipped_score_changed", "n_cases", "n_cases_paired", "n_cases_missing",
                           "n_cases_score_changed"},
     "score": {"baseline", "candidate", "difference"},
     "moved": [{"field", "baseline", "candidate"}], "blocks": [{"code", "text"}],
     "noise": {"sd", "near", "ulp", "is_assumed", "dtype", "sentence"},
     "ledger": [{"cause", "n_cases", "points", "gained", "lost"}],
     "causes": [{"cause", "n_pairs", "n_score_changed"}],
     "onsets", "flips": {"width", "starts", "series": [{"cause", "counts"}], "n", "n_at_start"},
     "clusters": [{"key", "cause", "tokens": [[baseline id, candidate id]], "n_cases", "n_of_cause", "cases"}],
     "n_clusters", "larger_shifts": {"n_cases", "n_read", "n_established"}}

A comparison whose traces have not all been read has the first six alone, `unread` above 0, and the score.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest, ledger, pairing
from evalboard.core.cause import CAUSES, CODES
from evalboard.core.clusters import Cluster, Parted, find_clusters, histogram
from evalboard.core.larger_shifts import ESTABLISHED, LargerShifts
from evalboard.core.numeric_noise import NumericNoise
from evalboard.core.pairing import KINDS, Pairing

VERSION = 2
CLUSTERS_KEPT, CASES_OF_A_CLUSTER = 200, 5
NONE = -1  # in arrays of positions and token ids
LOST, GAINED, MISSING, SAME = 0, 4, 8, 9  # where the consequences of each kind begin
GRAVEST_FIRST = ("flipped", "text_only", "drift_only", "identical")

Json = dict[str, Any]
Bools = NDArray[np.bool_]
Codes = NDArray[np.uint8]
Indexes = NDArray[np.int64]
Scores = NDArray[np.float64]
TokenBytes = Callable[[int], bytes]


@dataclass(frozen=True, eq=False)
class Matched:
    """Two runs' pairs with their scores; scores_*: float64[n_cases, repeats], NaN where missing.

    candidate_alike: the candidate's under the baseline's scorer where that is another one and has scored them.
    Where a side has no score at all, as of a log that holds none, the pairs are those of the responses.
    is_mixed: several buckets served a side, so that it has no score as a whole, and the two have no difference.
    """

    pairing: Pairing
    baseline: Scores
    candidate: Scores
    candidate_alike: Scores | None
    is_mixed: bool

    @cached_property  # every group of a comparison asks
    def is_scored(self) -> bool:
        return not (np.isnan(self.baseline).all() or np.isnan(self.candidate).all())

    @property
    def moves(self) -> Scores:
        """float64[m]: by how much the candidate's score is higher, pair by pair; 0 where nothing is scored."""
        pairs = self.pairing
        if not self.is_scored:
            return np.zeros(len(pairs))
        ours = self.baseline[pairs.cases, pairs.baseline_repeats]
        found: Scores = self.candidate[pairs.cases, pairs.candidate_repeats] - ours
        return found


@dataclass(frozen=True, eq=False)
class Differing:
    """The scored pairs that differ, int64 or uint8, all of one length.

    pairs: indexes into the pairing. causes: codes of cause.CODES; kinds: indexes into KINDS. shifts: 1 where the shift
    is larger than noise, 0 where it is not, NONE where `larger_shifts.is_larger` says neither. onsets, flips:
    positions, NONE where never. tokens_*: chosen at the flip, NONE where there is none.
    """

    pairs: Indexes
    causes: Codes
    kinds: Codes
    shifts: Indexes
    onsets: Indexes
    flips: Indexes
    tokens_baseline: Indexes
    tokens_candidate: Indexes


def consequence(kind: str, move: float | None) -> int:
    """The place of a pair in the case list, 0 the gravest: score lost, gained, missing (move None), unchanged."""
    if move is None:
        return MISSING
    first = LOST if move < 0 else GAINED if move > 0 else SAME
    return first + GRAVEST_FIRST.index(kind)


def kind_of(code: int) -> str | None:
    """The kind of a pair from its consequence; None where it is missing."""
    if code == MISSING:
        return None
    return GRAVEST_FIRST[(code - SAME if code >= SAME else code) % len(GRAVEST_FIRST)]


def begin(matched: Matched, is_unread: Bools, noise: NumericNoise | None, judged: Json) -> Json:
    """The summary by digests alone. is_unread: bool[m], pairs whose traces or texts differ; judged: moved, blocks.

    noise: None where nothing differs that would be judged by it.
    """
    kinds = np.full(len(is_unread), KINDS.index("identical"), np.uint8)
    counts = _counts(matched, kinds, np.zeros(len(kinds), np.uint8) == 1)
    counts["identical"] -= int(np.count_nonzero(is_unread))
    counts["unread"] = int(np.count_nonzero(is_unread))
    # Causes are not known yet; the means are, and no row is kept.
    points = _ledger(matched, kinds)
    return {
        "version": VERSION,
        "counts": counts,
        "score": _points(points),
        "noise": noise and _noise(noise),
        **judged,
    }


def summarise(
    begun: Json,
    matched: Matched,
    differing: Differing,
    *,
    is_read: Bools,
    words: tuple[TokenBytes, TokenBytes],
    case_indexes: Indexes,
) -> Json:
    """The whole summary. begun: what `begin` gave. is_read: bool[m], of the pairs that do not differ those that have
    logprobs. words: the bytes of each side's tokens. case_indexes: the suite's index of each case of the pairing.
    """
    kinds = np.full(len(matched.pairing), KINDS.index("identical"), np.uint8)
    causes = np.full(len(matched.pairing), CODES["identical"], np.uint8)
    kinds[differing.pairs], causes[differing.pairs] = differing.kinds, differing.causes
    is_flipped = kinds == KINDS.index("flipped")
    found = _ledger(matched, causes, matched.candidate_alike)
    reach = int(max(differing.onsets.max(initial=0), differing.flips.max(initial=0))) + 1
    clusters = _clusters(differing, case_indexes[matched.pairing.cases[differing.pairs]], words)
    return {
        **begun,
        "counts": _counts(matched, kinds, is_flipped),
        "score": _points(found),
        "ledger": [asdict(row) for row in found.rows],
        "causes": _causes(differing, matched),
        "onsets": _histogram(differing.onsets, differing.causes, reach),
        "flips": _histogram(differing.flips, differing.causes, reach),
        "clusters": clusters[:CLUSTERS_KEPT],
        "n_clusters": len(clusters),
        "larger_shifts": asdict(_larger_shifts(matched.pairing, differing, is_read)),
    }


def _larger_shifts(pairs: Pairing, differing: Differing, is_read: Bools) -> LargerShifts:
    has_shift, is_larger, is_established = (
        is_read.copy(),
        np.zeros(len(pairs), np.bool_),
        np.zeros(len(pairs), np.bool_),
    )
    has_shift[differing.pairs], is_larger[differing.pairs] = differing.shifts != NONE, differing.shifts == 1
    is_established[differing.pairs] = np.isin(differing.causes, [CODES[cause] for cause in ESTABLISHED])
    read = np.unique(pairs.cases[has_shift])
    return LargerShifts(
        n_cases=len(np.unique(pairs.cases[is_larger])),
        n_read=len(read),
        n_established=len(np.setdiff1d(pairs.cases[is_established], read)),
    )


def _counts(matched: Matched, kinds: Codes, is_flipped: Bools) -> Json:
    is_changed = matched.moves != 0
    counted = pairing.count(matched.pairing, kinds, is_changed)
    return {
        **asdict(counted),
        "n_pairs": len(matched.pairing),
        "unread": 0,
        "flipped_score_changed": int(np.count_nonzero(is_changed & is_flipped)),
        "n_cases": matched.pairing.n_cases,
        "n_cases_paired": int(np.count_nonzero(matched.pairing.is_paired)),
        "n_cases_score_changed": len(np.unique(matched.pairing.cases[is_changed])),
    }


def _ledger(matched: Matched, causes: Codes, alike: Scores | None = None) -> ledger.Ledger:
    if matched.is_mixed or not matched.is_scored:
        return ledger.Ledger(0, None, None, None, ())
    return ledger.make_ledger(matched.baseline, matched.candidate, matched.pairing, causes, alike)


def _points(found: ledger.Ledger) -> Json:
    return {"baseline": found.baseline, "candidate": found.candidate, "difference": found.difference}


def _noise(noise: NumericNoise) -> Json:
    how = (
        f"assumed for {noise.dtype} logits, because no repeats of these runs differ that could measure it"
        if noise.is_assumed
        else "measured from repeats that differ"
    )
    limit = f"a near tie moves by at most {noise.near:.3g} nats"
    return {
        "sd": noise.sd,
        "near": noise.near,
        "ulp": noise.ulp,
        "is_assumed": noise.is_assumed,
        "dtype": noise.dtype,
        "sentence": f"Noise of the logits: {noise.sd:.3g} nats, {how}; {limit}.",
    }


def _causes(differing: Differing, matched: Matched) -> list[Json]:
    n_pairs = np.bincount(differing.causes, minlength=len(CAUSES))
    has_moved = matched.moves[differing.pairs] != 0
    n_changed = np.bincount(differing.causes[has_moved], minlength=len(CAUSES))
    found = [
        {"cause": cause, "n_pairs": int(n_pairs[code]), "n_score_changed": int(n_changed[code])}
        for cause, code in CODES.items()
        if n_pairs[code]
    ]
    n_missing = len(matched.pairing.missing_cases)
    return ([{"cause": "error", "n_pairs": n_missing, "n_score_changed": 0}] if n_missing else []) + found


def _histogram(positions: Indexes, causes: Codes, reach: int) -> Json:
    is_there = positions != NONE
    every = histogram(positions[is_there].tolist(), reach)
    series = [
        {
            "cause": CAUSES[code],
            "counts": list(histogram(positions[is_there & (causes == code)].tolist(), reach).counts),
        }
        for code in np.unique(causes[is_there]).tolist()
    ]
    n = int(np.count_nonzero(is_there))
    return {
        "width": every.width,
        "starts": list(every.starts),
        "series": series,
        "n": n,
        "n_at_start": every.n_at_start,
    }


def _clusters(differing: Differing, cases: Indexes, words: tuple[TokenBytes, TokenBytes]) -> list[Json]:
    """Like flips put together by the tokens' bytes; each knows the ids that they came as."""
    is_there = differing.flips != NONE
    table = np.column_stack(
        [differing.causes[is_there], differing.tokens_baseline[is_there], differing.tokens_candidate[is_there]]
    )
    different, which = np.unique(table, axis=0, return_inverse=True)
    spelled = [
        (CAUSES[code], words[0](token), words[1](other_token)) for code, token, other_token in different.tolist()
    ]
    ids: dict[tuple[str, bytes | None, bytes | None], list[list[int]]] = {}
    for key, (_, token, other_token) in zip(spelled, different.tolist(), strict=True):
        ids.setdefault(key, []).append([token, other_token])
    pairs = zip(cases[is_there].tolist(), which.ravel().tolist(), strict=True)
    found = find_clusters(Parted(case, *spelled[group]) for case, group in pairs)
    return [
        {
            "key": _key(cluster),
            "cause": cluster.cause,
            "tokens": ids[cluster.cause, cluster.baseline_token, cluster.candidate_token],
            "n_cases": cluster.n_cases,
            "n_of_cause": cluster.n_of_cause,
            "cases": list(cluster.cases[:CASES_OF_A_CLUSTER]),
        }
        for cluster in found
    ]


def _key(cluster: Cluster) -> str:
    """A cluster's name in addresses: the same for like divergences of any comparison."""
    tokens = [token.hex() for token in (cluster.baseline_token or b"", cluster.candidate_token or b"")]
    return f"{cluster.cause}-{digest.digest_json(tokens)[:8]}"
