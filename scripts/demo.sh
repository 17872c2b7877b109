#!/usr/bin/env bash
# Shows gtc at work on a small model: what was found on this machine, a run with gradients, and the graph.
set -eu
cd "$(dirname "$0")/.."
gtc=bin/gtc
case=testdata/golden/cases/models/$(ls testdata/golden/cases/models | head -n 1)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

echo "# gtc doctor"
$gtc doctor
echo
echo "# $case/model.py"
cat "$case/model.py"
echo
echo "# gtc info"
$gtc info "$case/model.py"
echo
echo "# gtc run --grad"
$gtc run "$case/model.py" --entry forward --inputs "$case/in.npz" --outputs "$out/out.npz" --grad
echo
if [ -d examples/mnist ]; then
	echo "# go run ./examples/mnist"
	"${GO:-go}" run ./examples/mnist
fi
