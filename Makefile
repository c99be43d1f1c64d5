# Everything a newcomer needs: `make run` shows the main job on real input, `make test` proves it.
# Both do all the set-up themselves; `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help

DEMO_DIR ?= .
LOG ?= embedded
SEEDS ?= 1..500
SECONDS_FUZZ ?= 60
SECONDS_BENCH ?= 60

STACK ?= stack

.PHONY: help setup run run-stack stack stack-down test drills sim search mutations fuzz bench bench-stack lint docs clean-dev

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## install what is missing (root) or say what to install
	@scripts/setup.sh

run: setup ## one task per file of DEMO_DIR, killed half-way and resumed; LOG=embedded|kafka
	@DEMO_DIR='$(DEMO_DIR)' LOG='$(LOG)' scripts/run-demo.sh

run-stack: setup ## the same with separate processes on real Kafka, Cassandra and Redis
	@DEMO_DIR='$(DEMO_DIR)' LOG=stack scripts/run-demo.sh

stack: setup ## real Kafka, Cassandra and Redis on loopback; prints their addresses (STACK=name)
	@scripts/stack.sh start --name '$(STACK)'
	@echo "to use it: . .dev/run/$(STACK).env"

stack-down: ## end what `make stack` started
	@scripts/stack.sh stop --name '$(STACK)'

test: setup ## every test, real engines included
	@scripts/test.sh

drills: setup ## only the tests of faults on real engines
	@scripts/test.sh drills

sim: setup ## simulate SEEDS=1..500 (any range)
	cargo run --release -q -p simulation --bin sim -- --seeds $(SEEDS)

search: setup ## the exhaustive search with its large budgets
	cargo run --release -q -p model-search --example bigger

mutations: setup ## regenerate docs/mutations.md and docs/mutations-simulation.md
	cargo run --release -q -p model-search --bin mutation-table
	cargo run --release -q -p simulation --bin sim -- --mutations 400 > docs/mutations-simulation.md

fuzz: setup ## mutated records against decoder and fold, SECONDS_FUZZ=60
	cargo run --release -q -p fuzz-log -- --seconds $(SECONDS_FUZZ)

bench: setup ## figures over HTTP, each beside a baseline and its target; SECONDS_BENCH=60
	@mkdir -p .dev
	set -o pipefail; cargo bench -q -p task-core --bench fold | tee .dev/bench-fold.txt
	cargo bench -q -p task-core --bench timers
	cargo bench -q -p event-log
	cargo run --profile dist -q -p dualtrack -- bench --seconds $(SECONDS_BENCH) --dir .dev --json .dev/bench.json --fold .dev/bench-fold.txt

bench-stack: setup ## throughput and dispatch with separate processes on real Kafka, Cassandra and Redis
	@mkdir -p .dev
	cargo build --profile dist -q -p dualtrack -p dualtrack-coordinator -p dualtrack-task-engine -p dualtrack-auto-replay
	scripts/with-stack.sh target/dist/dualtrack bench --stack --seconds $(SECONDS_BENCH) --dir .dev --json .dev/bench-stack.json

lint: setup ## format and clippy
	@scripts/test.sh lint

docs: setup ## regenerate what is generated (event table, settings, lists, OpenAPI document)
	UPDATE_DOCS=1 cargo test -q -p repository-checks
	UPDATE_DOCS=1 cargo test -q -p dualtrack --lib --bin dualtrack --test dev generated
	UPDATE_DOCS=1 cargo test -q -p coordinator-edge --test edge the_document_is_the_committed_one

clean-dev: ## remove downloads, logs and data of runs
	rm -rf .dev
