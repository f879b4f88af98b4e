"""Write a comparison's summary as JSON, stored with its differing pairs.

Shape, version 2. Points, nats and positions as everywhere; null is "not known"; `cases` are case indexes.
`noise` is that between the buckets that served most of each side, null where nothing differs.

    {"version", "counts": {"n_pairs", "identical", "drift_only", "flipped", "text_only", "missing", "unread",
                           "score_changed", "flipped_score_changed", "n_cases", "n_cases_paired", "n_cases_missing",
                           "n_cases_score_changed", "other_text", "untraced"},
     "parts": {each of CASE_PARTS, "missing_on_both"},
     "score": {"baseline", "candidate", "difference"},
     "moved": [{"field", "baseline", "candidate"}], "blocks": [{"code", "text"}],
     "noise": {"sd", "near", "ulp", "is_assumed", "dtype", "capped_from"},
     "ledger": [{"cause", "n_cases", "points", "gained", "lost", "noise", "parts": [likewise]}],
     "causes", "looks": [{"cause", "n_pairs", "n_score_changed"}], "unseen": [cause],
     "onsets", "flips": {"width", "starts", "series": [{"cause", "counts"}], "n", "n_at_start"},
     "clusters": [{"key", "cause", "tokens": [[baseline id, candidate id]], "n_cases", "n_of_cause", "cases"}],
     "n_clusters", "larger_shifts": {"n_cases", "n_read", "n_established"}}

A comparison whose traces have not all been read has the first seven alone, `unread` above 0, and the score.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.compare import ledger, pairing
from evalboard.core.compare.cause import CAUSE_CODES, CAUSES, ENDED
from evalboard.core.compare.clusters import Parted, TokenCluster, find_clusters, histogram
from evalboard.core.compare.pairing import PAIR_KINDS, Pairing

COMPARISON_VERSION = 2
MAX_CLUSTERS, MAX_CLUSTER_CASES = 200, 5
NO_POSITION = -1  # in arrays of positions and token ids
SCORE_LOST, SCORE_GAINED, SCORE_MISSING, SCORE_SAME = 0, 4, 8, 9  # where the consequences of each kind begin
GRAVEST_FIRST = ("flipped", "text_only", "drift_only", "identical")
# Every case is in one part, the first that holds of it, so that their numbers add up to all: `changed` are those whose
# score changed in some pair and that are not judged as the three before; `unscored` have a response on both sides.
CASE_PARTS = ("broken", "fixed", "changed", "unstable", "other_text", "same_text", "unscored", "missing")

# These say why a pair differs, however far its logits moved.
ESTABLISHED = frozenset(
    {
        "error",
        "scorer",
        "prompt_changed",
        "model_changed",
        "prompt_mismatch",
        "sampling_changed",
        "backend_changed",
        "seed_ignored",
        "whitespace",
        "length",
        *ENDED,
        "constrained",
        "sampler_fault",
    }
)

# A token was chosen that noise of the logprobs before it does not explain.
UNEXPLAINED = ("leak", "larger_shift", "sampler_fault")
MIN_UNEXPLAINED, MIN_UNEXPLAINED_SHARE = 3, 0.01  # of the cases judged: noise alone makes fewer

Json = dict[str, Any]
Bools = NDArray[np.bool_]
Codes = NDArray[np.uint8]
Indexes = NDArray[np.int64]
Scores = NDArray[np.float64]
TokenBytes = Callable[[int], bytes]


@dataclass(frozen=True, eq=False)
class MatchedRuns:
    """Two runs' pairs with their scores; scores_*: float64[n_cases, repeats], NaN where missing.

    alike: each side's under the other's scorer, None where that is no other one, NaN where it has not scored them.
    Where a side has no score at all, as of a log that holds none, the pairs are those of the responses.
    is_mixed: several buckets served a side, so that it has no score as a whole, and the two have no difference.
    has_other_text: bool[m], marks the pairs whose texts differ.
    """

    pairing: Pairing
    baseline: Scores
    candidate: Scores
    alike: tuple[Scores | None, Scores | None]
    is_mixed: bool
    has_other_text: Bools

    @cached_property  # every group of a comparison asks
    def is_scored(self) -> bool:
        return not (np.isnan(self.baseline).all() or np.isnan(self.candidate).all())

    @cached_property
    def moves(self) -> Scores:
        """float64[m]: by how much the candidate's score is higher, pair by pair; 0 where nothing is scored."""
        pairs = self.pairing
        if not self.is_scored:
            return np.zeros(len(pairs))
        moves: Scores = pairs.take_candidate(self.candidate) - pairs.take_baseline(self.baseline)
        return moves

    @property
    def has_moved(self) -> Bools:
        """Return bool[n_cases]: whether the score of each case changed in some pair."""
        has_moved = np.zeros(self.pairing.n_cases, np.bool_)
        has_moved[self.pairing.cases[self.moves != 0]] = True
        return has_moved


@dataclass(frozen=True, eq=False)
class DifferingPairs:
    """The scored pairs that differ, all of one length.

    pairs: indexes into the pairing. causes: codes of CAUSE_CODES; looks: places in ledger.PARTS; numerics: codes of
    what the numbers alone say, the cause where they say nothing; kinds: indexes into PAIR_KINDS. shifts: 1 where the
    shift is larger than noise, 0 where it is not, NO_POSITION where `larger_shifts.is_larger` says neither. onsets,
    flips: positions, NO_POSITION where never. tokens_*: chosen at the flip, NO_POSITION where there is none.
    """

    pairs: Indexes
    causes: Indexes
    looks: Indexes
    numerics: Indexes
    kinds: Indexes
    shifts: Indexes
    onsets: Indexes
    flips: Indexes
    tokens_baseline: Indexes
    tokens_candidate: Indexes


def rank_consequence(kind: str, move: float | None) -> int:
    """Return a pair's place in the case list, 0 first: score lost, gained, missing (move None), unchanged."""
    if move is None:
        return SCORE_MISSING
    first = SCORE_LOST if move < 0 else SCORE_GAINED if move > 0 else SCORE_SAME
    return first + GRAVEST_FIRST.index(kind)


def kind_by_consequence(code: int) -> str | None:
    """Return the kind of a pair from its consequence; None where it is missing."""
    if code == SCORE_MISSING:
        return None
    return GRAVEST_FIRST[(code - SCORE_SAME if code >= SCORE_SAME else code) % len(GRAVEST_FIRST)]


def is_larger(cause: str, numeric: str | None, ratio: float | None, limit: float | None) -> bool | None:
    """Tell whether a pair moved more than noise explains; None if unknown, or if the cause is another.

    cause, numeric: as in `cause.Cause`. ratio, limit: R of the pair and t(L), None with too few usable positions.
    """
    if cause in ESTABLISHED or numeric in ESTABLISHED:
        return None
    if "larger_shift" in (cause, numeric) or cause in ("silent_change", "leak"):  # beyond noise by their own tests
        return True
    if ratio is not None and limit is not None:
        return ratio > limit
    return False if "near_tie" in (cause, numeric) else None


def count_by_digest(matched: MatchedRuns, is_unread: Bools) -> Json:
    """Return the counts and the score of a comparison whose traces have not been read.

    is_unread: bool[m], pairs of unequal traces or texts.
    """
    kinds = np.full(len(is_unread), PAIR_KINDS.index("identical"), np.uint8)
    counts = _counts(matched, kinds, np.zeros(len(kinds), np.bool_))
    counts["identical"] -= int(np.count_nonzero(is_unread))
    counts["unread"] = int(np.count_nonzero(is_unread))
    # Causes are not known yet; the means are, and no row is kept.
    return {"counts": counts, "score": _ledger(matched, kinds, kinds).score.to_stored()}


def complete_summary(
    begun: Json,
    matched: MatchedRuns,
    differing: DifferingPairs,
    *,
    is_read: Bools,
    is_traced: Bools,
    words: tuple[TokenBytes, TokenBytes],
    case_indexes: Indexes,
    noise_of: ledger.NoiseOfCases,
) -> Json:
    """Return the whole summary.

    begun: what was said before any pair was looked at. is_read: bool[m], the pairs that do not differ and have
    logprobs. is_traced: bool[m], the pairs whose responses both have logprobs. words: the bytes of each side's tokens.
    case_indexes: the suite's index of each case of the pairing. noise_of: as in `ledger.make_ledger`.
    """
    kinds = np.full(len(matched.pairing), PAIR_KINDS.index("identical"), np.uint8)
    causes = np.full(len(matched.pairing), CAUSE_CODES["identical"], np.uint8)
    looks = causes.copy()
    kinds[differing.pairs], causes[differing.pairs] = differing.kinds, differing.causes
    looks[differing.pairs] = differing.looks
    is_flipped = kinds == PAIR_KINDS.index("flipped")
    breakdown = _ledger(matched, causes, looks, matched.alike, noise_of)
    reach = int(max(differing.onsets.max(initial=0), differing.flips.max(initial=0))) + 1
    clusters, n_clusters = _clusters(differing, case_indexes[matched.pairing.cases[differing.pairs]], words)
    return {
        **begun,
        "noise": begun["noise"] if len(differing.pairs) or len(matched.pairing.missing_cases) else None,
        "counts": _counts(matched, kinds, is_flipped)
        | {
            "other_text": int(np.count_nonzero(matched.has_other_text)),
            "untraced": int(np.count_nonzero(~is_traced)),
        },
        "score": breakdown.score.to_stored(),
        "ledger": [row.to_stored() for row in breakdown.rows],
        "causes": _causes(differing, matched),
        "looks": _count_causes(differing.numerics, matched, differing.pairs, differing.numerics != differing.causes),
        "onsets": _histogram(differing.onsets, differing.causes, reach),
        "flips": _histogram(differing.flips, differing.causes, reach),
        "clusters": clusters,
        "n_clusters": n_clusters,
        "larger_shifts": _larger_shifts(matched.pairing, differing, is_read),
    }


def _larger_shifts(pairs: Pairing, differing: DifferingPairs, is_read: Bools) -> Json:
    """Count cases with movement beyond noise, each once. This is no test of whether two runs are equal.

    n_read: those with a pair that could be compared with noise; n_cases: those of them with one that moved further.
    n_established: the others that have a pair of an established cause.
    """
    has_shift, is_larger, is_established = is_read.copy(), np.zeros_like(is_read), np.zeros_like(is_read)
    has_shift[differing.pairs], is_larger[differing.pairs] = differing.shifts != NO_POSITION, differing.shifts == 1
    established = [CAUSE_CODES[cause] for cause in ESTABLISHED]
    is_established[differing.pairs] = np.isin(differing.causes, established) | np.isin(differing.looks, established)
    larger, read, established_cases = (np.zeros(pairs.n_cases, np.bool_) for _ in range(3))
    larger[pairs.cases[is_larger]] = read[pairs.cases[has_shift]] = True
    established_cases[pairs.cases[is_established]] = True
    return {
        "n_cases": int(np.count_nonzero(larger)),
        "n_read": int(np.count_nonzero(read)),
        "n_established": int(np.count_nonzero(established_cases & ~read)),
    }


def count_unexplained(pairs: Pairing, differing: DifferingPairs, is_read: Bools) -> int:
    """Return in how many cases a token was chosen that noise does not explain; 0 if it may.

    is_read: as in `complete_summary`.
    """
    codes = [CAUSE_CODES[cause] for cause in UNEXPLAINED]
    is_odd = (np.isin(differing.causes, codes) | np.isin(differing.looks, codes)) & (differing.flips != NO_POSITION)
    is_judged = is_read.copy()
    is_judged[differing.pairs] = is_odd | (differing.shifts != NO_POSITION)
    n = len(np.unique(pairs.cases[differing.pairs[is_odd]]))
    least = max(MIN_UNEXPLAINED, MIN_UNEXPLAINED_SHARE * len(np.unique(pairs.cases[is_judged])))
    return n if n >= least else 0


def _counts(matched: MatchedRuns, kinds: Codes, is_flipped: Bools) -> Json:
    is_changed = matched.moves != 0
    counted = pairing.count_pairs(matched.pairing, kinds, is_changed)
    return {
        **counted,
        "n_pairs": len(matched.pairing),
        "unread": 0,
        "flipped_score_changed": int(np.count_nonzero(is_changed & is_flipped)),
        "n_cases": matched.pairing.n_cases,
        "n_cases_paired": int(np.count_nonzero(matched.pairing.is_paired)),
        "n_cases_score_changed": int(np.count_nonzero(matched.has_moved)),
    }


def _ledger(
    matched: MatchedRuns,
    causes: Codes,
    looks: Codes,
    alike: tuple[Scores | None, Scores | None] = (None, None),
    noise_of: ledger.NoiseOfCases | None = None,
) -> ledger.Ledger:
    if matched.is_mixed or not matched.is_scored:
        return ledger.NO_LEDGER
    return ledger.make_ledger(matched.baseline, matched.candidate, matched.pairing, causes, looks, alike, noise_of)


def _causes(differing: DifferingPairs, matched: MatchedRuns) -> list[Json]:
    rows = _count_causes(differing.causes, matched, differing.pairs, np.ones(len(differing.pairs), np.bool_))
    n_missing = len(matched.pairing.missing_cases)
    return ([{"cause": "error", "n_pairs": n_missing, "n_score_changed": 0}] if n_missing else []) + rows


def _count_causes(codes: Indexes, matched: MatchedRuns, pairs: Indexes, is_counted: Bools) -> list[Json]:
    n_pairs = np.bincount(codes[is_counted], minlength=len(CAUSES))
    n_changed = np.bincount(codes[is_counted & (matched.moves[pairs] != 0)], minlength=len(CAUSES))
    return [
        {"cause": cause, "n_pairs": int(n_pairs[code]), "n_score_changed": int(n_changed[code])}
        for cause, code in CAUSE_CODES.items()
        if n_pairs[code]
    ]


def _histogram(positions: Indexes, causes: Indexes, reach: int) -> Json:
    is_there = positions != NO_POSITION
    every = histogram(positions[is_there], reach)
    series = [
        {
            "cause": CAUSES[code],
            "counts": list(histogram(positions[is_there & (causes == code)], reach).counts),
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


def _clusters(
    differing: DifferingPairs, cases: Indexes, words: tuple[TokenBytes, TokenBytes]
) -> tuple[list[Json], int]:
    """Return similar flips, joined by the tokens' bytes: the largest clusters, and the number of all."""
    is_there = differing.flips != NO_POSITION
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
    pairs = np.unique(
        np.column_stack([which.ravel(), cases[is_there]]), axis=0
    )  # repeats of a case that are alike: once
    clusters = find_clusters(Parted(case, *spelled[group]) for group, case in pairs.tolist())
    largest = [
        {
            "key": _key(cluster),
            "cause": cluster.cause,
            "tokens": ids[cluster.cause, *cluster.tokens],
            "n_cases": cluster.n_cases,
            "n_of_cause": cluster.n_of_cause,
            "cases": list(cluster.cases[:MAX_CLUSTER_CASES]),
        }
        for cluster in clusters[:MAX_CLUSTERS]
    ]
    return largest, len(clusters)


def _key(cluster: TokenCluster) -> str:
    """Return a cluster's name in addresses: the same for like divergences of any comparison."""
    tokens = [(token or b"").hex() for token in cluster.tokens]
    return f"{cluster.cause}-{digest.digest_json(tokens)[:8]}"
