"""Say in about five words what else could explain a release's result, or that it does not."""

from evalboard.contract.release import OtherCause
from evalboard.core.release import CauseState

# By the question and its state where no code says more.
TEXTS = {
    ("server", "ok"): "One server answered both sides",
    ("server", "unknown"): "Which server answered is unknown",
    ("prompts", "ok"): "Same prompts, scorer and settings",
    ("prompts", "unknown"): "The prompts are not known",
    ("prompts", "doubt"): "Cases are paired by id",
    ("noise", "unknown"): "No change was measured",
    ("missing", "ok"): "No answer is missing",
    ("missing", "unknown"): "Not decided yet",
    ("identity", "ok"): "Our workers attest both servers",
    ("identity", "unknown"): "Nothing names the server",
}
# By the code that decides: of a warning, of a reason, of the verdict, or that the difference is what is judged.
WORDS = {
    "as_judged": "Differs, and is judged here",
    "ship": "Noise cannot hide such a drop",
    "no_ship": "More than noise explains",
    "suite_changed": "The cases differ",
    "scorer_changed": "The scorers differ",
    "params_changed": "The sampling settings differ",
    "prompts_unknown": "A log lacks its prompts",
    "template_changed": "The chat template changed",
    "prompt_unchanged": "The prompts did not change",
    "mixed_fingerprint": "Several servers answered one side",
    "several_buckets": "Several servers answered one side",
    "model_changed": "The models differ too",
    "rebaseline": "Another server than the baseline’s",
    "baseline_expired": "Another server than the baseline’s",
    "batch_class": "The sides were batched differently",
    "stack_changed": "Another server than the baseline’s",
    "computation_apart": "One server, two ways of computing",
    "two_computations": "Two builds answered one side",
    "unsteady": "Repeats that must match differ",
    "load_differs": "The servers’ load differed",
    "not_in_turn": "Load at other hours may",
    "overdispersed": "Whole repeats moved together",
    "pins_broken": "Settings were not as pinned",
    "unvouched": "A server’s self-check failed",
    "not_greedy": "Answers were sampled, not greedy",
    "first_repeat_differs": "Only the first repeat differs",
    "rough_profile": "Batched as the cases came",
    "uncertified": "Batch effects are not certified",
    "stack_unchanged": "The server did not change",
    "service_unchanged": "Model and server are unchanged",
    "noisy": "Repeats spread too far",
    "noisy_bucket": "Repeats spread too far",
    "not_settled": "Within noise of your limit",
    "suite_too_small": "Too few cases to tell",
    "too_few_repeats": "Too few repeats to tell",
    "one_draw": "All repeats are one draw",
    "no_metric": "The metric cannot be taken",
    "noise_unmeasured": "One repeat measures no noise",
    "one_process": "Noise of one engine start",
    "few_cases": "Few cases: errors are likelier",
    "coarse": "Too coarse for this limit",
    "concentrated": "Few groups of cases changed",
    "uneven_groups": "One group of cases dominates",
    "few_groups": "Few groups of cases",
    "reach_wide": "Other cases may drop more",
    "candidates_tried": "Luck: many candidates were tried",
    "incomplete": "Missing answers could decide it",
    "missing": "Some answers are missing",
    "cached": "Some answers came from cache",
    "copies": "Some answers are copies",
    "fallback": "Some answers are a fallback’s",
    "truncated": "Answers were cut while thinking",
    "endings_differ": "One side’s answers ended early",
    "prompts_filtered": "A filter refused some prompts",
    "nothing_caches": "Equal repeats, declared not cached",
    "cases_left_out": "Some cases are left out",
    "other_model": "Another model answered",
    "identity_assumed": "Who answered is assumed",
    "stack_reported": "Who answered is self-reported",
    "reported": "Who answered is self-reported",
    "imported": "Who answered: a log’s word",
    "unknown_stack": "Nothing names the server",
}


def write_other_cause(cause: CauseState) -> OtherCause:
    """Return the contract of a question's state, with its words."""
    text = WORDS.get(cause.words) or TEXTS[cause.code, cause.state]
    return OtherCause(code=cause.code, state=cause.state, text=text, because=cause.because)
