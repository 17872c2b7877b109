# Everything builds and tests without cgo; only the race detector needs a C compiler (see the target race).
export CGO_ENABLED = 0

GO ?= go
FUZZTIME ?= 20s
PROGRAMS ?= 2000
FIRST ?= 1000

.PHONY: all build demo test race bench fuzz fuzz-programs llvm graphviz fmt

all: build

## build: the command, at bin/gtc
build:
	$(GO) build -trimpath -o bin/gtc ./cmd/gtc

## llvm: install LLVM's shared library where it is missing (native speed needs it, correctness does not)
llvm:
	@scripts/llvm.sh

## graphviz: install Graphviz where it is missing (only drawings as SVG and PNG need it)
graphviz:
	@scripts/graphviz.sh

## demo: build everything and show it at work
demo: llvm graphviz build
	@scripts/demo.sh

## test: formatting, vet, and all tests
test: llvm
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt -w is needed for:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) test ./...

## race: the tests of everything concurrent under the race detector; the conformance cases are left out
race:
	@scripts/race.sh

## bench: Go benchmarks of all packages
bench: llvm
	$(GO) test -run '^$$' -bench . -benchmem ./...

## fuzz: each native fuzz target for FUZZTIME
fuzz:
	@scripts/fuzz.sh $(FUZZTIME)

## fuzz-programs: PROGRAMS random programs from seed FIRST on, each run in every way that there is and compared
fuzz-programs: llvm
	$(GO) test ./internal/progen -run TestPrograms -v -timeout 0 -programs $(PROGRAMS) -first $(FIRST)

fmt:
	gofmt -w $$(git ls-files '*.go')
