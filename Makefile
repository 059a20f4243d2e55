SHELL := /bin/bash
export PATH := $(PATH):/usr/sbin:/sbin

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
# What `make bench` runs, how long `make nightly` runs each fuzz target, and on how
# many seeds it runs the simulator.
BENCH ?= .
FUZZTIME ?= 30s
SEEDS ?= 2000

.DEFAULT_GOAL := help
.PHONY: help run build test check fmt bench lab nightly deps hooks clean bin/gateway

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

run: build ## try it: a simulated payment backend and the gateway before it
	@bin/gateway demo

build: bin/gateway ## build bin/gateway, static and with its version

bin/gateway: # go build knows what changed
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./cmd/gateway

test: deps build ## run all tests, with the built gateway and real clients too
	go test ./...
	cd e2e && SLUICE_BIN='$(CURDIR)/bin/gateway' go test -count=1 ./...

check: ## what a commit has to pass: format, vet, staticcheck, tests with race
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted ('make fmt'):" $$unformatted; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	go test -race ./...

fmt: ## format the code
	gofmt -w .

bench: ## run the benchmarks; BENCH=regexp for some of them
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

lab: deps build ## load from wrk and hey through the gateway, on loopback
	bench/wrk.sh
	bench/hey.sh

nightly: ## long checks: every fuzz target, many simulator seeds, race without cache
	FUZZTIME=$(FUZZTIME) scripts/fuzz
	go test ./internal/sim -count=1 -timeout 60m -run TestSimulation -v -sim.seeds=$(SEEDS)
	go test -race -count=1 ./...

deps: ## install what the tests run: wrk, nginx, curl, python3, node, npm
	@scripts/deps

hooks: ## make git run `make check` before each commit
	ln -sf '$(CURDIR)/scripts/pre-commit' "$$(git rev-parse --git-path hooks)/pre-commit"

clean: ## remove what was built
	rm -rf bin
