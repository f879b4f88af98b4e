"""Causes as pages show them: a name, a glyph and a family, so that none is told by its colour alone."""

from dataclasses import dataclass

from evalboard.core.cause import CAUSES

FAMILIES = {
    "numeric": ("identical", "drift_only", "near_tie"),
    "shift": ("larger_shift",),
    "setup": ("model_changed", "backend_changed", "model_name_changed", "sampler_fault", "prompt_mismatch"),
    "reading": ("length", "whitespace", "scorer"),
    "absent": ("error", "unknown"),
}
_FAMILY = {cause: family for family, causes in FAMILIES.items() for cause in causes}


@dataclass(frozen=True, slots=True)
class CauseMark:
    """`glyph` is a symbol of the sprite; numeric causes are drawn open, the others solid."""

    code: str
    label: str
    family: str
    glyph: str

    @property
    def is_open(self) -> bool:
        return self.family == "numeric"


MARKS = {
    cause: CauseMark(cause, cause.replace("_", " "), _FAMILY[cause], f"cause-{cause.replace('_', '-')}")
    for cause in CAUSES
}
