# `make app` opens the studio, `make test` proves it; both install what they need.
# Options for the command behind a target go into ARGS: make app ARGS="--port 8600".

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help app quick test check bench outside compare refit mutants screenshots sheets canvas lint format lock wheel wheels docs clean app-env test-env browser

# Tests start hundreds of processes: none compiles all modules anew, whatever the surroundings say.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
ARGS ?=
REF ?= HEAD
# Tests that drive a browser have one Chromium and one server, and wait for them more than they
# compute: they run beside the others. Servers, workers and browsers of a machine of two cores come
# late at times: what fails is made again and listed ("RERUN"); what is wrong fails each time.
IN_BROWSER := tests/browser --reruns 2 -rR
# The rules of the house and the spine; no pages, no servers, no command line.
SPINE := tests/test_house.py $(addprefix tests/,fabric network workload hardware layout costs planner)
PYTEST := .venv/bin/python -m pytest -n auto --dist worksteal
PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet

# Debian ships venv and the browser as packages of their own; $(1) are the packages.
define apt-install
{ if [ "$$(id -u)" = 0 ]; then as_root=env; elif sudo -n true 2>/dev/null; then as_root='sudo -n env'; else as_root=; fi; \
  [ -n "$$as_root" ] && command -v apt-get >/dev/null \
  && $$as_root apt-get update -qq \
  && $$as_root DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) >/dev/null \
  || { echo "$(1): missing, and not to be installed from here; install with your package manager (apt-get install $(1)), then run make again." >&2; false; }; }
endef

# Brings .venv to the state of lock file $(1); the stamp holds what it was built from and where.
define install
@stamp=".venv/$(1).stamp"; state="$$({ pwd; cat $(1) pyproject.toml; } | sha256sum)"; \
if [ "$$(cat "$$stamp" 2>/dev/null)" != "$$state" ]; then \
  echo "Installing $(1) into .venv; the first time takes minutes."; \
  $(PIP) install --require-hashes -r $(1); \
  $(PIP) install --no-deps --editable .; \
  .venv/bin/python -c 'from nest_studio.jobs.kernels import build_kernels; build_kernels()'; \
  echo "$$state" > "$$stamp"; \
fi
endef

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 10

app: app-env ## install the runtime and open the studio
	@.venv/bin/python -m nest_studio app $(ARGS)

quick: test-env ## rules of the house and unit tests of the spine, while working
	@$(PYTEST) -q $(SPINE) --ignore tests/workload/tracing -m 'not check and not slow' $(ARGS)

test: test-env browser lint ## install everything, lint, type-check and run the tests
	@log="$$(mktemp)"; \
	.venv/bin/python -m pytest $(IN_BROWSER) -m 'browser and not check' $(ARGS) >"$$log" 2>&1 & browser=$$!; \
	trap 'kill "$$browser" 2>/dev/null || true; rm -f "$$log"' EXIT; \
	failed=0; \
	$(PYTEST) --ignore tests/browser --reruns 1 -rR -m 'not check and not browser' $(ARGS) || failed=$$?; \
	wait "$$browser" || { status=$$?; [ $$status = 5 ] || failed=$$status; }; \
	cat "$$log"; exit $$failed

check: test-env browser ## long enumerations, fuzzing and soaks
	@.venv/bin/python -m pytest -m check $(ARGS)

bench: test-env ## benchmarks
	@.venv/bin/python -m pytest benchmarks --benchmark-enable --benchmark-only $(ARGS)

outside: test-env ## what tools of other people make of our exports and files: make outside ARGS="torchtitan"
	@.venv/bin/python -m benchmarks.outside $(ARGS)

refit: test-env ## fit what measurements fit again, and say what moved: make refit REF=<commit>
	@.venv/bin/python -m benchmarks.validation regenerate training --fit
	@.venv/bin/python benchmarks/compare.py $(REF) $(ARGS)

compare: test-env ## every figure that moved since a commit: make compare REF=<commit>
	@.venv/bin/python benchmarks/compare.py $(REF) $(ARGS)

mutants: test-env ## put one-line defects in, one at a time, and see which tests notice
	@.venv/bin/python benchmarks/mutants.py $(ARGS)

screenshots: test-env browser ## take the README's pictures again
	@SCREENSHOTS=1 .venv/bin/python -m pytest tests/browser/test_screenshots.py

sheets: test-env browser ## write the decision sheets of docs/sheets again
	@.venv/bin/python benchmarks/sheets.py $(ARGS)

canvas: ## build the drawing component's asset again (needs Node and npm)
	@cd nest_studio/components/drawing/frontend && npm ci --silent && npm run --silent build

lint: test-env ## ruff and mypy, changing nothing
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check --quiet .
	@.venv/bin/mypy -n auto

format: test-env ## let ruff rewrite the sources
	@.venv/bin/ruff check --quiet --fix . || true
	@.venv/bin/ruff format .

wheel: test-env ## source archive and wheel in dist/
	@.venv/bin/python -m build --no-isolation

wheels: test-env ## whether every dependency has a wheel for Linux, macOS and Windows
	@.venv/bin/python benchmarks/wheels.py $(ARGS)

docs: test-env ## the documentation as a site in build/docs
	@.venv/bin/python -m sphinx -W --keep-going -q -b html docs build/docs $(ARGS)

lock: ## resolve pyproject.toml afresh into the lock files, every file by its hash
	@tmp="$$(mktemp -d)"; trap 'rm -rf "$$tmp"' EXIT; \
	$(PYTHON) -m venv "$$tmp/venv"; \
	"$$tmp/venv/bin/python" -m pip install --quiet uv; \
	resolve() { "$$tmp/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --output-file "$$@" >/dev/null; }; \
	torch="$$(sed -n 's/^torch = \["\(.*\)"\]$$/\1/p' pyproject.toml)"; \
	resolve "$$tmp/dev" --extra dev pyproject.toml; \
	resolve "$$tmp/run" --constraint "$$tmp/dev" pyproject.toml; \
	echo "$$torch" | resolve "$$tmp/torch" --constraint "$$tmp/dev" -; \
	cp "$$tmp/dev" requirements-dev.lock; cp "$$tmp/run" requirements.lock; cp "$$tmp/torch" requirements-torch.lock; \
	echo "$$torch+cpu" | resolve "$$tmp/cpu" --constraint "$$tmp/dev" - \
	|| { echo "requirements-torch-cpu.lock is as it was: UV_FIND_LINKS or UV_INDEX must name a place that has $$torch+cpu." >&2; false; }; \
	cp "$$tmp/cpu" requirements-torch-cpu.lock

clean: ## delete what tools leave behind, but not .venv
	@rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	@find . -path ./.venv -prune -o -type d -name __pycache__ -exec rm -rf {} +

app-env: .venv/bin/pip
	$(call install,requirements.lock)

# Of torch the build without CUDA, where pip is told of a place that has it (docs/decisions/locks.md).
test-env: .venv/bin/pip
	$(call install,requirements-dev.lock)
	@.venv/bin/python -c 'import torch' 2>/dev/null \
	|| $(PIP) install --require-hashes -r requirements-torch-cpu.lock 2>/dev/null \
	|| $(PIP) install --require-hashes -r requirements-torch.lock

# pip comes last into a new environment, so half-made ones are made again.
.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	|| { echo "Nest Studio needs Python 3.11 or newer as $(PYTHON): name another with PYTHON=..." >&2; false; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(call apt-install,python3-venv)
	@$(PYTHON) -m venv --clear .venv

# The browser, and a library that Playwright's driver needs. Without them the tests that
# drive a browser skip, saying so; on CI they fail. Where there is an npm, axe-core too, some seconds.
browser: test-env
	@{ command -v chromium && .venv/bin/python -c 'import ctypes; ctypes.CDLL("libatomic.so.1")'; } >/dev/null 2>&1 \
	|| $(call apt-install,chromium libatomic1) || true
	@cd nest_studio/components/drawing/frontend && { [ -d node_modules/axe-core ] || ! command -v npm >/dev/null \
	|| timeout 60 npm ci --silent --no-audit --no-fund; } || true
