"""Say in about five words what else could explain a release's result, or that it does not."""

from evalboard.contract.release import OtherCause
from evalboard.core.release import CauseState
from evalboard.wording.messages import Messages

# By the code that decides: of a warning, of a reason, of the verdict, or that the difference is what is judged; else by
# the question and its state.
OTHER_CAUSES = Messages(
    "other_cause",
    {
        ("server", "denies"): {"server_ok": "One server answered both sides"},
        ("server", "unknown"): {"server_unknown": "Which server answered is unknown"},
        ("server", "allows"): {
            "several_buckets": "One side was served in several ways",
            "baseline_expired": "The server changed since the baseline",
            "two_computations": "One side has outlier responses",
            "unsteady": "Repeats that must match differ",
            "load_differs": "The servers’ load differed",
            "not_in_turn": "The sides ran at different times",
            "overdispersed": "Whole repeats moved together",
            "pins_broken": "Settings were not as pinned",
            "unvouched": "A server’s self-check failed",
            "not_greedy": "Answers were sampled, not greedy",
            "first_repeat_differs": "Only the first repeat differs",
            "rough_profile": "Batched as the cases came",
            "stack_unchanged": "The server did not change",
            "service_unchanged": "Model and server are unchanged",
        },
        ("server", "asserts"): {
            "as_judged": "It differs; that is what is judged",
            "mixed_fingerprint": "One side was served in several ways",
            "model_changed": "The models differ too",
            "rebaseline": "The server changed since the baseline",
            "batch_class": "The sides were batched differently",
            "stack_changed": "Another server than the baseline’s",
            "computation_apart": "One server, two ways of computing",
        },
        ("prompts", "denies"): {"prompts_ok": "Same prompts, scorer and settings"},
        ("prompts", "unknown"): {"prompts_unknown": "A log lacks its prompts"},
        ("prompts", "allows"): {
            "prompts_doubt": "Cases are paired by id",
            "template_changed": "The chat template changed",
            "prompt_unchanged": "The prompts did not change",
            "judge_rebuilt": "The judge’s server was updated",
            "judge_unchecked": "The judge may have changed",
        },
        ("prompts", "asserts"): {
            "suite_changed": "The cases differ",
            "scorer_changed": "The scorers differ",
            "judge_changed": "The judge changed",
            "params_changed": "The sampling settings differ",
            "scorer_shared": "The new scorer judges both sides",
            "judged_again": "The newest judging counts",
        },
        ("noise", "denies"): {
            "ship": "A drop over your limit is unlikely",
            "no_ship": "The drop is larger than noise",
        },
        ("noise", "unknown"): {
            "noise_unknown": "The change could not be measured",
            "inconclusive": "Not decided yet",
        },
        ("noise", "allows"): {
            "uncertified": "Batch effects are not certified",
            "noisy_bucket": "Repeats spread too far",
            "not_settled": "Within noise of your limit",
            "suite_too_small": "Too few cases to tell",
            "too_few_repeats": "Too few repeats to tell",
            "one_draw": "All repeats are one sample",
            "no_metric": "The metric cannot be computed",
            "noise_unmeasured": "One repeat measures no noise",
            "one_process": "Noise of one engine start",
            "few_cases": "Few cases: each one counts much",
            "coarse": "Too coarse for this limit",
            "concentrated": "Few groups of cases changed",
            "uneven_groups": "One group of cases dominates",
            "few_groups": "Few groups of cases",
            "reach_wide": "Other cases may drop more",
            "candidates_tried": "Luck: many candidates were tried",
        },
        ("noise", "asserts"): {"noisy": "Repeats spread too far"},
        ("missing", "denies"): {"missing_ok": "No answer is missing"},
        ("missing", "unknown"): {"missing_unknown": "Not decided yet"},
        ("missing", "allows"): {
            "missing": "Some answers are missing",
            "truncated": "Answers were cut while thinking",
            "endings_differ": "One side’s answers ended early",
            "prompts_filtered": "A filter refused some prompts",
            "nothing_caches": "Equal repeats, declared not cached",
            "cases_left_out": "Some cases are left out",
        },
        ("missing", "asserts"): {
            "incomplete": "Missing answers could decide it",
            "cached": "Some answers came from cache",
            "copies": "Some answers are copies",
            "fallback": "Some answers are a fallback’s",
        },
        ("identity", "denies"): {"identity_ok": "Our workers attest who answered"},
        ("identity", "unknown"): {
            "identity_unknown": "Nothing names the server",
            "unknown_stack": "Nothing names the server",
        },
        ("identity", "allows"): {
            "other_model": "Another model answered",
            "identity_assumed": "Who answered is assumed",
            "stack_reported": "Who answered is self-reported",
            "reported": "Who answered is self-reported",
            "imported": "Only a log says who answered",
        },
    },
)


def write_other_cause(cause: CauseState) -> OtherCause:
    """Return the contract of a question's state, with its words."""
    code = cause.words if cause.words in OTHER_CAUSES else f"{cause.code}_{cause.state}"
    return OtherCause(code=cause.code, state=cause.state, text=OTHER_CAUSES.write(code), because=cause.because)
