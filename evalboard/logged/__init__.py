"""A log as a run: what the server stores of it, and what `evalboard diff` compares without one."""
