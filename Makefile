# Short names for the commands that people type most. `make test` is the
# README's test command; everything else is a part of it or takes longer.

GO ?= go
# FUZZTIME is how long each fuzz target runs; SOAKTIME how long the whole soak
# test, LOADTIME how long the full load alone.
FUZZTIME ?= 30s
SOAKTIME ?= 1h
LOADTIME ?= 1h
BENCHFLAGS ?=
REPORTFLAGS ?=
# BASE is what bench-compare compares with, in COMPARETURNS turns.
BASE ?= HEAD~1
COMPARETURNS ?= 6
COMPARETIME ?= 200ms
# Pinned, as everything that the suites fetch.
BENCHSTAT ?= golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

.PHONY: build test lint race soak fullload fuzz bench bench-report bench-compare bench-embedding failover cover image clean

# One static binary, as in the container image.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -o build/bin/zooraft ./cmd/zooraft

test:
	$(GO) run ./test/run

lint:
	$(GO) run ./test/run -only vet,staticcheck,lint,graph

race:
	$(GO) test -race $$($(GO) list ./... | grep -v /test/)

# What shows only sometimes, for an hour: random faults above all. FAULTS_SEED
# repeats a run. SOAKTIME=10m leaves out what cannot be made shorter.
soak:
	$(GO) run ./test/soak -time $(SOAKTIME)

# Three servers as they are shipped under full load, which may cause no election.
fullload:
	$(GO) run ./test/soak -time $(LOADTIME) -only load

# Every fuzz target of the repository, FUZZTIME each.
fuzz:
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$$dir"/*_test.go | sed 's/func //' | while read -r target; do \
	    echo "== $$dir $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
	  done || exit 1; \
	done

# Ours and the real ZooKeeper by turns; see docs/performance.md. BENCHFLAGS is
# for the driver, for instance BENCHFLAGS="-turns 1 -rows read,write,memory", and
# with -log-store bolt in it every row is taken with that log store.
bench:
	$(GO) test ./test/bench -run '^$$' -bench Apache -benchtime 1x -timeout 6h -args $(BENCHFLAGS)

# The plots of docs/performance.md, both systems, in some twenty minutes; larger
# with REPORTFLAGS="-grow 50", one of them with REPORTFLAGS="-plots throughput".
bench-report:
	$(GO) test ./test/bench -run '^$$' -bench Report -benchtime 1x -timeout 12h -args -warm-up 3s -duration 2s $(REPORTFLAGS)

# The hot paths of codec, tree, watch and state here and at another commit, by
# turns: time and allocations of each operation. make bench-compare BASE=v1.0
bench-compare:
	mkdir -p build/bench
	rm -f build/bench/base.txt build/bench/here.txt
	-git worktree remove --force build/bench/base
	git worktree add --detach build/bench/base $(BASE)
	rm -rf build/bench/base/test/allocations
	cp -r test/allocations build/bench/base/test/
	for turn in $$(seq $(COMPARETURNS)); do \
	  (cd build/bench/base && $(GO) test ./test/allocations -run '^$$' -bench Rooms -benchtime $(COMPARETIME)) >> build/bench/base.txt || exit 1; \
	  $(GO) test ./test/allocations -run '^$$' -bench Rooms -benchtime $(COMPARETIME) >> build/bench/here.txt || exit 1; \
	done
	git worktree remove --force build/bench/base
	$(GO) run $(BENCHSTAT) build/bench/base.txt build/bench/here.txt

# Ten kills of each leader, ours and the real ZooKeeper's by turns.
failover:
	$(GO) test ./test/bench -run '^$$' -bench Failover -benchtime 1x -timeout 1h -v

# How long a test waits for a server: Curator's TestingServer and ours by turns in
# one JVM, then zktest; see docs/testing.md. On a quiet machine.
bench-embedding:
	$(GO) test ./zktest -run '^$$' -bench Start
	$(GO) test ./test/embedding -run '^$$' -bench . -benchtime 1x -timeout 1h

cover:
	mkdir -p build
	$(GO) test -coverprofile=build/cover.out -coverpkg=./internal/... ./internal/... ./cmd/...
	$(GO) tool cover -func=build/cover.out | tail -1
	$(GO) tool cover -html=build/cover.out -o build/cover.html

image:
	docker build -t zooraft .

clean:
	rm -rf build
