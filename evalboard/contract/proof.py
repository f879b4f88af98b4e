"""The setups of `evalboard worker prove` (docs/node.md)."""

PROOF_SETUPS = (
    "fast",
    "pinned",
    "invariant",
    "pinned-cached",
    "invariant-cached",
    "invariant-tp2",
    "fast-fp8",
    "pinned-fp8",
    "invariant-fp8",
)
