# Everything a newcomer types. Each target sets up what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: help setup java peers run test lint format bench soak clean

help: ## say what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.installed ## make the virtual environment and install Lanner into it

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Lanner needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

JAVA := openjdk-17-jre-headless

# What interop tests talk to, and what Spark runs on. Where a program is missing, its tests skip and name it.
PEERS := iproute2 nftables tshark python3-samba samba samba-ad-dc samba-ad-provision samba-dsdb-modules \
	samba-vfs-modules winbind ldb-tools krb5-user libkrb5-dev gcc $(JAVA)

peers: setup ## install the programs that interop tests talk to (Debian, as root)
	@test "$$(id -u)" = 0 && command -v apt-get >/dev/null || \
		{ echo "install these yourself: $(PEERS)"; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(PEERS) >/dev/null
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[kerberos]'

java: ## see that there is a Java for Spark; install Debian's, if that may be done
	@test -x "$$JAVA_HOME/bin/java" || command -v java >/dev/null || \
		{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(JAVA) >/dev/null; } || \
		echo "Spark needs Java 17 or later: install $(JAVA), or set JAVA_HOME; without it the pipeline's tests skip"

run: setup ## start a queue manager with its data in ./lanner-data
	@echo "Commands are in $(BIN): export PATH=\"\$$PWD/$(BIN):\$$PATH\""
	@exec $(BIN)/lanner serve

test: setup java ## run every test that needs nothing but this machine
	$(BIN)/python -m pytest -n $(JOBS) -m "not soak"

lint: setup ## ruff, mypy --strict, the import rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## let ruff format and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup java ## measure, and print each number as a ratio
	$(BIN)/python -m bench

soak: setup java ## the long proofs: hundreds of kills (about an hour)
	$(BIN)/python -m pytest -m soak --timeout 7200 -s

clean: ## remove everything that make made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis lanner-data
