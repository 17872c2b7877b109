#!/usr/bin/env bash
# Runs every native fuzz target for the given time each (default 20s); stops at the first failure.
set -eu
cd "$(dirname "$0")/.."
time=${1:-20s}
git grep -l '^func Fuzz' -- '*_test.go' | while read -r file; do
	dir=$(dirname "$file")
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
		echo "== $dir $target"
		"${GO:-go}" test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 5s
	done
done
