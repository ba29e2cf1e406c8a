# make demo   sets up and releases a private top-20 of movies from four million synthetic ratings
# make test   sets up and runs all tests; make quick runs the fast half
# make bench  prints every speed target beside what is measured here
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
TESTS ?= -n auto

.PHONY: demo test quick lint bench clean

demo: .venv/.installed
	@$(BIN)/python examples/ratings.py demo
	@echo '$$ discreet select demo/ratings.parquet --user user_id --item movie_id --where "stars = 5" \'
	@echo '      --domain demo/movies.csv:movie_id --label title -k 20 --epsilon 1'
	@$(BIN)/discreet select demo/ratings.parquet --user user_id --item movie_id --where "stars = 5" \
	      --domain demo/movies.csv:movie_id --label title -k 20 --epsilon 1

test: .venv/.installed-test
	@$(BIN)/python -m pytest $(TESTS)

quick: .venv/.installed-test
	@$(BIN)/python -m pytest $(TESTS) -m "not slow"

lint: .venv/.installed-test
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary

bench: .venv/.installed-test
	@$(BIN)/python benchmarks/core.py
	@$(BIN)/python benchmarks/tables.py

clean:
	rm -rf .venv demo dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("discreet needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml
	@$(PIP) install -e .
	@touch $@

.venv/.installed-test: .venv/bin/python pyproject.toml
	@$(PIP) install -e ".[test]"
	@touch $@ .venv/.installed
