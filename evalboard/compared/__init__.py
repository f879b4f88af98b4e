"""A comparison as REST and `evalboard diff` answer it: contracts made of a report, whoever keeps it."""
