"""Causes on pages: a name, a glyph and a family, so that colour is never needed."""

from dataclasses import dataclass

from evalboard.core.compare import CAUSES, ENDED

FAMILIES = {
    "numeric": ("identical", "drift_only", "near_tie"),
    "shift": ("larger_shift",),
    "setup": (
        "model_changed",
        "backend_changed",
        "model_name_changed",
        "sampling_changed",
        "leak",
        "silent_change",
        "seed_ignored",
        "constrained",
        "sampler_fault",
        "prompt_changed",
        "prompt_mismatch",
    ),
    "reading": ("length", *ENDED, "whitespace", "scorer"),
    "absent": ("error", "unknown"),
}
# How a pair looks beside another model or backend, in words.
LOOKS = {
    "whitespace": "differs in white space alone",
    "length": "one answer ends where the other goes on",
    **{ending: f"one answer is {ending}" for ending in ENDED},
    "constrained": "something forbade tokens on a side",
    "sampler_fault": "looks like a sampler fault",
    "near_tie": "looks like a near tie",
    "larger_shift": "looks like a larger shift",
}
LABELS = {"leak": "possible leak"}  # nothing proves one but decoding again
_FAMILY = {cause: family for family, causes in FAMILIES.items() for cause in causes}


@dataclass(frozen=True, slots=True)
class CauseMark:
    """A cause's mark. `glyph`: a symbol of the sprite, open for numeric causes, solid for others."""

    code: str
    label: str
    family: str
    glyph: str

    @property
    def is_open(self) -> bool:
        return self.family == "numeric"


MARKS = {
    cause: CauseMark(
        cause, LABELS.get(cause, cause.replace("_", " ")), _FAMILY[cause], f"cause-{cause.replace('_', '-')}"
    )
    for cause in CAUSES
}
# Of the ledger's parts: a confounded pair looks like nothing that could be named.
PART_MARKS = MARKS | {"confounded": CauseMark("confounded", "confounded", "absent", "cause-unknown")}
