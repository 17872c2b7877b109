#!/usr/bin/env bash
# Tests under the race detector, which needs cgo and a C compiler. -short leaves out the conformance cases; packages that start no
# goroutine and share nothing (autograd, codegen, the scalar programs) are left out too, because the detector makes them ten times slower.
set -u
cd "$(dirname "$0")/.." || exit 1

if ! command -v gcc >/dev/null 2>&1; then
	as_root=""
	[ "$(id -u)" != 0 ] && as_root="sudo -n"
	export DEBIAN_FRONTEND=noninteractive
	{ $as_root apt-get install -y --no-install-recommends gcc libc6-dev || { $as_root apt-get update && $as_root apt-get install -y --no-install-recommends gcc libc6-dev; }; } >/dev/null 2>&1
	if ! command -v gcc >/dev/null 2>&1; then
		echo "the race detector needs a C compiler: apt-get install gcc libc6-dev" >&2
		exit 1
	fi
fi
export CGO_ENABLED=1
packages=$("${GO:-go}" list ./... | grep -vE '/(autograd|codegen/.*|ir/scalar|passes|examples/.*)$')
exec "${GO:-go}" test -race -short $packages
