"""What a release may judge (docs/verdict.md says what each forbids)."""

# A model, both sides being served alike; what serves one and the same model; or both together, as a hosted model is
# bought.
TREATMENTS = MODEL_TREATMENT, STACK_TREATMENT, SERVICE_TREATMENT = ("model", "stack", "service")
