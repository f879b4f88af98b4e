"""What a release may judge (docs/verdict.md says what each forbids), and what counts as a change."""

from typing import Annotated, NamedTuple

# A model, both sides being served alike; what serves one and the same model; both together, as a hosted model is
# bought; or the prompt, both sides being one model that is served alike.
TREATMENTS = MODEL_TREATMENT, STACK_TREATMENT, SERVICE_TREATMENT, PROMPT_TREATMENT = (
    "model",
    "stack",
    "service",
    "prompt",
)
AUTO = "auto"  # what differs, if that is one thing
# How cases are paired where their prompts may differ.
PAIRINGS = BY_INPUT, BY_ID = ("input", "id")
CHANGED = 0.6  # of a case's score; less is what a case at 3 of 5 against 2 of 5 does by chance

# What `contract.base.says(enum=…)` returns, without pydantic, which the help of a command must not load.
Treatment = Annotated[str, (("enum", TREATMENTS),)]
PairBy = Annotated[str, (("enum", PAIRINGS),)]


class Terms(NamedTuple):
    """What is judged, and how cases are paired. pair_by: used only if the prompt is judged."""

    treatment: str = MODEL_TREATMENT
    pair_by: str = BY_INPUT

    @property
    def is_prompt(self) -> bool:
        return self.treatment == PROMPT_TREATMENT

    @property
    def query(self) -> dict[str, str]:
        """The parameters of an address that name them; none for what is taken unless named."""
        if self.treatment == MODEL_TREATMENT:
            return {}
        return {"treatment": self.treatment} | ({"pair_by": self.pair_by} if self.pair_by != BY_INPUT else {})
