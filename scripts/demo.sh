#!/usr/bin/env bash
# Shows gtc at work: a Go model is trained on real digits, recorded as a package, drawn, compiled and run on the test digits, as accurate as
# eagerly and faster; it becomes PTX for a GPU; and a script whose loop ends when the data says so is run and differentiated. Output files
# go to dist/demo. A step that fails, or an accuracy that differs, ends the demo with status 1.
set -eu
cd "$(dirname "$0")/.."
gtc=bin/gtc
out=dist/demo
net=$out/lenet.gtc
mkdir -p "$out"

title() { printf '\n== %s\n' "$*"; }
step() { printf '$ %s\n' "$*"; "$@"; }
have_llvm() { $gtc doctor --json | grep -A1 '"llvm"' | grep -q '"found": true'; }

title "What is on this machine"
step $gtc doctor

title "Train LeNet eagerly on 10,000 digits"
step "${GO:-go}" build -o "$out/mnist" ./examples/mnist
step "$out/mnist" -o "$out" | tee "$out/train.txt"

title "Trace it into a package"
step $gtc trace ./examples/lenet.New --input 'x=f32[2000,1,28,28]' --weights "$out/lenet.safetensors" -o "$net"
step $gtc info "$net"

title "Draw its graph"
step $gtc dot "$net" --after fuse --input 'x=f32[2000,1,28,28]' --format dot -o "$out/lenet.dot"
if command -v dot >/dev/null 2>&1; then
	step $gtc dot "$net" -o "$out/lenet.svg"
	step $gtc dot "$net" --after fuse --input 'x=f32[2000,1,28,28]' -o "$out/lenet-kernels.svg"
fi

title "Compile it"
step $gtc compile "$net" --input 'x=f32[2000,1,28,28]' --time-passes --html "$out/passes.html" --emit=ir -o "$out/lenet.gtir"
if have_llvm; then
	step $gtc compile "$net" --input 'x=f32[2000,1,28,28]' --emit=asm -o "$out/lenet.s"
	sed -n '/^# /p' "$out/lenet.s"
fi

title "Run the compiled package on the 2,000 test digits"
step $gtc run "$net" --inputs "$out/test.npz" --outputs "$out/scores.npz"
step $gtc run examples/mnist/accuracy.py --input "scores=$out/scores.npz:out.0" --input "labels=$out/labels.npz:labels" | tee "$out/accuracy.txt"
trained=$(sed -n 's/^epoch .* test accuracy \([0-9.]*\) %.*/\1/p' "$out/train.txt" | tail -n 1)
packaged=$(sed -n 's/.*{\([0-9.e-]*\)}.*/\1/p' "$out/accuracy.txt" | awk '{ printf "%.2f", 100 * $1 }')
echo "test accuracy: eager $trained %, compiled $packaged %"
[ "$trained" = "$packaged" ] || { echo "the accuracies differ" >&2; exit 1; }
step $gtc trace ./examples/lenet.New --input 'x=f32[1,1,28,28]' --weights "$out/lenet.safetensors" -o "$out/lenet-1.gtc"
step "$out/mnist" -compare "$net" -o "$out"
step "$out/mnist" -compare "$out/lenet-1.gtc" -o "$out"
if have_llvm; then
	step $gtc bench "$net" --inputs "$out/test.npz" --min-time 1s
fi

title "PTX for a GPU"
if have_llvm; then
	step $gtc compile "$net" --input 'x=f32[2000,1,28,28]' --target=cuda --arch sm_80 --emit=ptx -o "$out/lenet.ptx"
	echo "$(wc -l <"$out/lenet.ptx") lines of PTX, with $(grep -c '\.entry' "$out/lenet.ptx") kernels"
fi

title "A loop that stops early, and its gradients"
step cat examples/earlyexit/earlyexit.py
step $gtc run examples/earlyexit/earlyexit.py --input 'x=f32[4,8]' --input 'w=f32[8,8]' --input threshold=0.35 --seed 1 --input 'cotangent.0=f32[4,8]' --grad
printf '\nEverything that was written is in %s.\n' "$out"
