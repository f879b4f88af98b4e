"""Make the contracts of a comparison for REST and `evalboard diff` from a report, stored or not."""
