#!/usr/bin/env bash
# Shows gtc at work: a Go model is trained on real digits, recorded as a package, drawn, timed, and run on the test digits; a script
# whose loop ends when the data says so is run and differentiated. Output files go to dist/demo.
set -eu
cd "$(dirname "$0")/.."
gtc=bin/gtc
out=dist/demo
mkdir -p "$out"

step() { printf '\n== %s\n' "$*"; "$@"; }

step $gtc doctor
step "${GO:-go}" run ./examples/mnist -o "$out"
step $gtc trace ./examples/lenet.New --input 'x=f32[2000,1,28,28]' --weights "$out/lenet.safetensors" -o "$out/lenet.gtc"
step $gtc info "$out/lenet.gtc"
step $gtc dot "$out/lenet.gtc" --format dot -o "$out/lenet.dot"
command -v dot >/dev/null 2>&1 && step $gtc dot "$out/lenet.gtc" -o "$out/lenet.svg"
step $gtc run "$out/lenet.gtc" --inputs "$out/test.npz" --outputs "$out/scores.npz"
printf '\nThe accuracy of the package on the test digits:\n'
step $gtc run examples/mnist/accuracy.py --input "scores=$out/scores.npz:out.0" --input "labels=$out/labels.npz:labels"
step $gtc bench "$out/lenet.gtc" --inputs "$out/test.npz" --min-time 1s || echo "(timing needs LLVM)"

printf '\nA loop that stops early, and its gradients:\n'
step cat examples/earlyexit/earlyexit.py
step $gtc run examples/earlyexit/earlyexit.py --input 'x=f32[4,8]' --input 'w=f32[8,8]' --input 'cotangent.0=f32[4,8]' --grad
