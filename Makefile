# The door to everything; `make help` lists it. Each target installs what it needs, once.

PORT ?= 8800
ENGINE ?=
export PORT ENGINE

# The first interpreter in range that can make a virtualenv, else the first in range; PYTHON=... names another.
find_python = for need in venv,ensurepip sys; do for p in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	$$p -c "import $$need, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" 2>/dev/null && { echo $$p; break 2; }; \
	done; done
install = p=$$($(find_python)); \
	[ -n "$$p" ] || { echo "Cannot install: no Python 3.11 to 3.13 found; install one, or name it: make $@ PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	$$p tools/install.py

.DEFAULT_GOAL := help
.PHONY: help up install engine changed quick test nightly rig soak check format bench lock clean

help:  ## this list
	@awk -F ':.*##' '/^[a-z]+:.*##/ { printf "  make %-9s%s\n", $$1, $$2 }' Makefile

up:  ## everything on this machine, from nothing to two running sample runs; PORT=8800, ENGINE=none
	@$(install) app && exec .venv/bin/python -m evalboard up

install:  ## the packages of the web side, the runner and the command line, into .venv
	@$(install) app

engine:  ## vLLM's CPU build, into .venv-engine
	@$(install) engine

changed:  ## the tests that the changes since main can reach
	@$(install) dev && exec .venv/bin/python tools/test.py --changed

quick:  ## the tests that need no server, in a minute
	@$(install) dev && exec .venv/bin/python tools/test.py --quick $(ARGS)

test:  ## the gate, or what ARGS names; what cannot run here is skipped with the reason
	@$(install) dev && $(if $(ARGS),,$(install) core &&) exec .venv/bin/python tools/test.py $(ARGS)

nightly:  ## everything: the gate, what left it, more random draws, the rig and small benches
	@$(install) dev && $(install) core && $(install) engine && $(install) rig && exec .venv/bin/python tools/test.py --nightly

rig:  ## real vLLM servers behind a real LiteLLM, and what is said of them (tests/rig/README.md); `make test` leaves it out
	@$(install) dev && $(install) engine && $(install) rig && exec .venv/bin/python tools/test.py tests/rig $(ARGS)

soak:  ## the tests that draw at random, with more draws and another seed each time
	@$(install) dev && exec .venv/bin/python tools/test.py --soak $(ARGS)

check:  ## lint, format, types, import contracts, migrations, API schema, Dockerfile, compose.yaml, CI files
	@$(install) dev && exec .venv/bin/python tools/check.py

format:  ## put Python files into the house's format
	@$(install) dev && .venv/bin/ruff check --fix-only --quiet . && .venv/bin/ruff format .

bench:  ## measure; a table here and JSON in bench/results/
	@$(install) dev && $(install) engine && exec .venv/bin/python -m bench $(ARGS)

lock:  ## resolve requirements/*.in anew (needs uv)
	@$(install) dev && .venv/bin/python tools/lock.py

clean:  ## remove what was installed; the data folder stays
	rm -rf .venv .venv-core .venv-engine .venv-rig .venv*.lock evalboard.egg-info
