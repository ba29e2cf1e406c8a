# make demo   sets up and releases a private top-20 of movies from four million synthetic ratings, one per country, a site
# make test   sets up and runs the tests, in under five minutes on two cores; make quick runs the fast half
# make soak   the crash and race tests of the ledger at full length: many minutes
# make bench  prints every speed target beside what is measured here, in a few minutes; make bench-full measures more
# make bench-compare  measures again, and prints what got worse since the last committed results, or with
#                     AGAINST=REVISION since that revision, measured on this machine; PARTS="start tables" measures less
# make study  compares all mechanisms on made-up scores, and writes report/index.html
# make gallery  photographs all that readers see: every plot, and pages of a site in both languages, into report/gallery
# make docs   builds the documentation, with its pictures, into site/; make docs-check looks at it
# make package  builds the wheel, and tries it in an empty environment, README and types included
# make fuzz   looks for inputs that break discreet, for SECONDS=60 in all
# make test-long  what takes long: Spark, whole grids of cases, all examples, longer draws and integrals; .ci/run runs it too
# make test-connect  all that is asked of Spark, asked of Spark 4 through Spark Connect, in an environment of its own
# make test-torch  the tests of torch tensors, in an environment of their own: several gigabytes
# make peers  sets up the libraries that make test compares with where they are there
# make self-test  plants faults in the code, and checks that verify and audit catch each one
# make mutants  counts the small wrong changes of the sampler that the tests find; ARGS=--help says more
# make house  counts modules, hops and who knows of what; REVS="85c18ae ." puts two revisions side by side
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
TESTS ?= -n auto
SECONDS ?= 60

.PHONY: demo gallery test quick test-long test-connect test-torch soak lint bench bench-full bench-compare study docs docs-check package fuzz peers self-test mutants house clean

EVENTS := select demo/ratings.parquet --user user_id --item movie_id --where "stars = 5" \
  --domain demo/movies.csv:movie_id --label title --ledger demo/budget.db
DEMO := $(EVENTS) -k 20 --epsilon 1 --shortfall 0.05
SITE := publish demo/charts.toml --yes --as-of 2026-07-01
CHARTS := $(EVENTS) -k 3 --epsilon 0.5 --by country --groups demo/countries.csv:code --each-user one

demo: .venv/.installed
	@$(BIN)/python examples/ratings.py demo
	@rm -f demo/budget.db
	@cp examples/charts.toml demo/charts.toml
	@echo '$$ discreet budget init demo/budget.db --epsilon 3 --unit "users of the demo"'
	@$(BIN)/discreet budget init demo/budget.db --epsilon 3 --unit "users of the demo"
	@echo '$$ discreet $(DEMO)'
	@$(BIN)/discreet $(DEMO)
	@echo 'The sentence below the list says how good it is: --shortfall 0.05 buys that, beside epsilon.'
	@echo '$$ discreet $(SITE)'
	@$(BIN)/discreet $(SITE)
	@echo '$$ discreet $(CHARTS)'
	@$(BIN)/discreet $(CHARTS)
	@echo '$$ discreet budget show demo/budget.db'
	@$(BIN)/discreet budget show demo/budget.db
	@echo 'The first once more would spend more than is left, so it is refused:'
	@$(BIN)/discreet $(DEMO) || true

test: .venv/.installed-test
	@$(BIN)/python -m pytest $(TESTS)

quick: .venv/.installed-test
	@$(BIN)/python -m pytest $(TESTS) -m "not slow and not soak and not site and not long"

test-long: .venv/.installed-test
	@DISCREET_TESTS=long $(BIN)/python -m pytest $(TESTS) -m "(long or hypothesis) and not soak and not site"

test-connect: .venv-connect/.installed
	@DISCREET_TESTS=long DISCREET_SPARK=connect .venv-connect/bin/python -m pytest -m "long or hypothesis" -k spark \
	  tests/sources/events tests/release/test_shortfall.py tests/release/test_sketch_discovery.py

test-torch: .venv-torch/.installed
	@.venv-torch/bin/python -m pytest -q tests/sources/arrays/test_tensor.py

soak: .venv/.installed-test
	@$(BIN)/python -m pytest -m soak tests/ledger

lint: .venv/.installed-test
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache > .imports.txt || { cat .imports.txt; exit 1; }
	@rm -f .imports.txt

bench: .venv/.installed-test
	@$(BIN)/python benchmarks/run.py

bench-full: .venv/.installed-test
	@$(BIN)/python benchmarks/run.py --full

bench-compare: .venv/.installed-test
	@$(BIN)/python benchmarks/run.py --compare $(if $(AGAINST),--against $(AGAINST)) $(PARTS)

study: .venv/.installed-plot
	@$(BIN)/discreet study --out report
	@echo 'Open report/index.html in a browser.'

gallery: .venv/.installed-test
	@$(BIN)/python tools/gallery.py report/gallery

# The pages need nothing from elsewhere to be built or read.
docs: .venv/.installed-docs
	@$(BIN)/python docs/_build/pictures.py
	@$(BIN)/python docs/_build/navigation.py docs/pictures
	@$(BIN)/python docs/_build/command_line.py > docs/cli.md
	@$(BIN)/python docs/_build/charts_keys.py docs/pictures
	@$(BIN)/python docs/_build/notebook_page.py docs
	@rm -rf site && $(BIN)/zensical build --strict --clean
	@echo 'Open site/index.html in a browser.'

docs-check: docs .venv/.installed-test
	@$(BIN)/python -m pytest -m site tests/documents/test_site.py

package:
	@PYTHON=$(PYTHON) .ci/package

fuzz: .venv/.installed-fuzz
	@$(BIN)/python -m fuzz.run $(SECONDS)

peers: .venv-peers/.installed

self-test: .venv/.installed-test
	@$(BIN)/python tools/self_test.py $(ARGS)

mutants: .venv/.installed-mutants
	@DISCREET_TESTS=long $(BIN)/python -m mutation.run $(ARGS)

house: .venv/.installed-test
	@$(BIN)/python tools/house.py $(REVS:%=--rev %) $(ARGS)

clean:
	rm -rf .venv .venv-connect .venv-peers .venv-torch mutants demo report site docs/cli.md docs/notebook.md docs/pictures dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("discreet needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	@echo 'Setting up .venv and installing into it: a minute or two, once.'
	@$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml
	@$(PIP) install -e .
	@touch $@

.venv/.installed-test: .venv/bin/python pyproject.toml
	@$(PIP) install -e ".[test]"
	@touch $@ .venv/.installed-plot .venv/.installed

.venv/.installed-plot: .venv/bin/python pyproject.toml
	@$(PIP) install -e ".[plot]"
	@touch $@ .venv/.installed

.venv/.installed-docs: .venv/bin/python pyproject.toml
	@$(PIP) install -e ".[docs]"
	@touch $@ .venv/.installed-plot .venv/.installed

.venv/.installed-mutants: .venv/bin/python pyproject.toml
	@$(PIP) install -e ".[mutants]"
	@touch $@ .venv/.installed-test .venv/.installed

# Its package of pyspark is that of Spark 4, whose jars have a server of Spark Connect: half a gigabyte.
.venv-connect/.installed: pyproject.toml
	@$(PYTHON) -m venv .venv-connect
	@.venv-connect/bin/python -m pip --quiet --disable-pip-version-check install -e ".[test-connect]"
	@touch $@

.venv-torch/.installed: pyproject.toml
	@$(PYTHON) -m venv .venv-torch
	@.venv-torch/bin/python -m pip --quiet --disable-pip-version-check install -e ".[test-torch]"
	@touch $@

# diffprivlib asks for a scikit-learn that nothing else here could live with.
.venv-peers/.installed:
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip --quiet --disable-pip-version-check install "diffprivlib==0.6.6" "scikit-learn<1.6"
	@touch $@

# Where atheris does not install, fuzz/run.py says so and runs Hypothesis alone.
.venv/.installed-fuzz: .venv/bin/python pyproject.toml
	@$(PIP) install -e ".[fuzz]" 2>/dev/null || $(PIP) install -e ".[test]"
	@touch $@ .venv/.installed-test .venv/.installed
