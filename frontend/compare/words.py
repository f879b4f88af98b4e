"""Explain why the number changed, for readers who have never seen the product."""

from evalboard.contract.compare import CaseParts, Comparison, FlipPoint, LedgerLine, Moved, PositionHistogram
from evalboard.wording.manifest import render_field_name, render_moved, render_sides
from evalboard.wording.messages import Messages, speak
from evalboard.wording.numbers import capital, counted, listed
from frontend.compare.causes import MARKS
from frontend.shell.findings import Headline, split_claim
from frontend.templatetags.numbers import nats, points, signed_points

PLAIN = {
    "error": "responses are missing on one side",
    "scorer": "the same answers were graded differently",
    "prompt_changed": "the prompt changed",
    "model_changed": "the model changed",
    "prompt_mismatch": "the prompts differ",
    "sampling_changed": "the sampling settings differ",
    "leak": "answers continue with another request's text",
    "silent_change": "something changed that no fingerprint shows",
    "seed_ignored": "the seed was ignored",
    "backend_changed": "another serving stack answered",
    "model_name_changed": "a model of another name answered",
    "whitespace": "answers differ only in formatting",
    "length": "answers were cut at different lengths",
    "filtered": "the provider filtered answers of one side",
    "refused": "the model refused on one side",
    "empty": "answers of one side are empty",
    "cut": "answers of one side were cut at a limit",
    "constrained": "decoding was constrained on one side",
    "sampler_fault": "a less likely token was chosen",
    "near_tie": "rounding decided between two almost equally likely tokens",
    "larger_shift": "the logits moved more than rounding explains",
    "unknown": "the cause is unknown",
}
HEADLINES = Messages(
    "compare",
    {
        ("cause", "unknown"): {
            "queued": "The causes are still being computed. Differences that digests show are below.",
        },
        ("backends", "asserts"): {
            "mixed": "Several buckets answered for the {sides}, so no single change can be given. Each bucket "
            "is scored separately on the run's page. Pairs of responses are below.",
        },
        ("change", "unknown"): {"unscored": "No case is scored on both sides, so the change is unknown."},
        ("change", "denies"): {
            "identical": "Nothing changed: all {n:,} pairs of responses have the same text and score.",
            "identical_pairs": "Nothing changed where both sides answered: {n:,} pairs of responses have the same text "
            "and score.",
            "same_scores": "The score did not change, though some responses differ.",
            "cancels_out": "The score did not change, though {cases}: gains and losses cancel out.",
        },
        ("change", "asserts"): {"support": "{cases}{both}."},
        ("responses", "asserts"): {"not_compared": "{lack}: the scores are over {n:,} of {n_cases:,} cases."},
        ("cause", "asserts"): {
            "because": "The score {moved} because {cause}.",
            "because_stack": "The score {moved} because {cause}.",
        },
        ("cause", "allows"): {"next_to": "The score {moved}, and {cause}."},
        ("counts", "asserts"): {
            "most_same": "Most cases read the same; {n_changed:,} of {n:,} changed {n_changed:its|their} score.",
            "most_other": "Most cases read differently; {n_changed:,} of {n:,} changed {n_changed:its|their} score.",
            "none_changed": "None of {n:,} cases changed its score.",
            "no_pair": "No case has a response on both sides.",
            "pairs": "Of {n:,} pairs of responses: {kinds}.",
            "regraded": "{n:,} score changes come without a flip.",
        },
        ("positions", "asserts"): {
            "nowhere": "No response has a {what}.",
            "all_at_start": "Every {what} is at the first token. The prompt itself was computed differently.",
            "most_at_start": "{n_at_start:,} of {n:,} differ from the first token. Each {what} by position.",
            "some_at_start": "{n:,} in all, {n_at_start:,} of them at the first token. Each {what} by position.",
        },
        ("flips", "asserts"): {
            "moved": "How far the logits moved at each flip.",
            "all_noise": "Noise explains every flip.",
            "no_noise": "Noise explains no flip.",
            "some_noise": "{n:,} of {n_flips:,} flips are explained by noise.",
            "zone": "Movement by margin at the flip. The zone is what noise explains: {near} nats.",
        },
    },
)
NAMED = 2


def describe_comparison(report: Comparison) -> Headline:
    """Return the first sentence of the page, and what supports it; where cases lack a response, how many."""
    finding, n = _describe_change(report), report.counts.n_cases
    lack = describe_not_compared(report.parts)
    if not lack or not report.progress.is_finished or report.score.difference is None:
        return finding
    more = HEADLINES.write("not_compared", lack=lack, n=n - report.counts.n_cases_missing, n_cases=n)
    return Headline(finding.claim, f"{finding.rest} {more}".lstrip())


def describe_not_compared(parts: CaseParts) -> str:
    """Say how many cases lack a response or a score, and on which side; "" if none does."""
    counts = (
        (parts.missing - parts.missing_on_both, "no response on one side"),
        (parts.missing_on_both, "no response on either side"),
        (parts.unscored, "no score on at least one side"),
    )
    return listed([f"{counted(n, 'case')} {'has' if n == 1 else 'have'} {what}" for n, what in counts if n] or [""])


def _describe_change(report: Comparison) -> Headline:
    counts = report.counts
    if not report.progress.is_finished:
        return split_claim(HEADLINES.write("queued"))
    if mixed := report.mixed_sides:
        return split_claim(HEADLINES.write("mixed", sides=" and the ".join(mixed)))
    if report.score.difference is None:
        return Headline(HEADLINES.write("unscored"))
    if counts.identical == counts.n_pairs and not counts.score_changed:
        return split_claim(HEADLINES.write("identical_pairs" if counts.missing else "identical", n=counts.n_pairs))
    n_cases = counts.n_cases_score_changed
    cases = "1 case changed its score" if n_cases == 1 else f"{n_cases:,} cases changed their score"
    is_in_every_repeat = report.outcomes is not None and report.outcomes.is_in_every_repeat
    if len(report.sides.baseline.repeats) + len(report.sides.candidate.repeats) > 2 and not is_in_every_repeat:
        cases += " in some repeat"
    if not n_cases:
        return Headline(HEADLINES.write("same_scores"))
    if not any(line.shown for line in report.ledger):
        return split_claim(HEADLINES.write("cancels_out", cases=cases))
    return Headline(_explain_change(report, report.score.difference), _support(report, cases))


def _explain_change(report: Comparison, difference: float) -> str:
    """Say by how much the score changed and why; where a block leaves the cause open, what else is known."""
    lines = sorted((line for line in report.ledger if line.shown), key=lambda line: -abs(line.shown or 0.0))
    first, *rest = lines
    cause = _plain(report, first)
    if rest:
        second = f"{_plain(report, rest[0])} ({signed_points(rest[0].shown)})"
        more = f", and {len(rest) - 1} more below" if len(lines) > NAMED else ""
        cause = f"{cause} ({signed_points(first.shown)}), and {second}{more}"
    moved = "rose" if difference > 0 else "fell" if difference < 0 else "did not change"
    by = f" by {signed_points(difference).lstrip('+−')} points" if difference else ""
    facts = {"moved": f"{moved}{by}", "cause": cause}
    if first.cause == "unknown":
        return HEADLINES.write("next_to", facts)
    code = "because_stack" if any(line.cause == "backend_changed" for line in lines[:NAMED]) else "because"
    blocks = [f"block.{block.code}" for block in report.blocks]
    return speak([HEADLINES.claim(code, facts)], with_codes=blocks) or HEADLINES.write("next_to", facts)


def _plain(report: Comparison, line: LedgerLine) -> str:
    words = PLAIN.get(line.cause, MARKS[line.cause].label)
    if line.cause != "backend_changed":
        return words
    settings = [each for each in report.moved_fields if "." in each.field and not each.field.startswith("sampling.")]
    text = render_moved(settings, at_most=2)
    return f"{words} ({text})" if text else words


def _support(report: Comparison, cases: str) -> str:
    gained = sum(line.gained for line in report.ledger)
    lost = sum(line.lost for line in report.ledger)
    both = f": {signed_points(gained)} gained, {signed_points(lost)} lost" if gained and lost else ""
    return HEADLINES.write("support", cases=capital(cases), both=both)


def describe_counts(report: Comparison) -> Headline:
    """Say how many cases read or score differently, and what their pairs of responses are like."""
    counts = report.counts
    n, n_changed = counts.n_cases_paired, counts.n_cases_score_changed
    is_same = 2 * report.parts.same_text > n
    code = "no_pair" if not n else "none_changed" if not n_changed else "most_same" if is_same else "most_other"
    kinds = (
        (counts.identical, "the same"),
        (counts.drift_only, "with the same tokens and other logprobs"),
        (counts.flipped, "with a flip"),
        (counts.text_only, "with another text"),
        (counts.unread, "not read yet"),
        (counts.missing, "without a response or a score"),
    )
    shown = ", ".join(f"{n_pairs:,} {kind}" for n_pairs, kind in kinds if n_pairs)
    claims = [HEADLINES.claim("pairs", n=counts.n_pairs + counts.missing, kinds=shown)]
    n_regraded = counts.score_changed - counts.flipped_score_changed
    if n_regraded > 0 and not report.prompts:
        claims.append(HEADLINES.claim("regraded", n=n_regraded))
    return Headline(HEADLINES.write(code, n=n, n_changed=n_changed), speak(claims))


def describe_histogram(histogram: PositionHistogram, what: str) -> Headline:
    """Say where responses drift or flip: at the start, or anywhere."""
    n, n_at_start = histogram.n, histogram.n_at_start
    most = "all" if n_at_start == n else "most" if 2 * n_at_start > n else "some"
    code = f"{most}_at_start" if n else "nowhere"
    return split_claim(HEADLINES.write(code, n=n, n_at_start=n_at_start, what=what))


def describe_scatter(report: Comparison, shown: tuple[FlipPoint, ...]) -> Headline:
    """Say whether flips sit where noise explains them."""
    if report.noise is None:
        return Headline(HEADLINES.write("moved"))
    near = report.noise.near
    within = sum((flip.movement or 0.0) <= near for flip in shown)
    code = "all_noise" if within == len(shown) else "some_noise" if within else "no_noise"
    claim = HEADLINES.write(code, n=within, n_flips=len(shown))
    return Headline(claim, HEADLINES.write("zone", near=nats(near)))


def describe_side(report: Comparison, side: str) -> str:
    """Return a side's spread: "60.0–63.3 over 5 repeats"."""
    runs = getattr(report.sides, side)
    if side in report.mixed_sides:
        return f"{len(runs.buckets)} buckets, no score as a whole"
    known = [repeat.score for repeat in runs.repeats if repeat.score is not None]
    low_high = (points(min(known)), points(max(known))) if known else None
    reach = "not scored" if low_high is None else low_high[0] if low_high[0] == low_high[1] else "–".join(low_high)
    if report.repeats:
        return f"repeat {runs.repeats[0].index}: {reach}"
    n = len(runs.repeats)
    return f"{reach} over {n} repeat{'' if n == 1 else 's'}"


def moved_lines(moved: tuple[Moved, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return the name and both values of each field that differs."""
    return tuple((render_field_name(each.field), *render_sides(each.as_field)) for each in moved)
