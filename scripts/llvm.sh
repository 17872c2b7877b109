#!/usr/bin/env bash
# Makes sure that LLVM 19's shared library is there: gtc loads it at run time to make machine code. Installs it through apt where that
# is possible; otherwise says what to install and goes on, since the reference evaluator needs no LLVM.
set -u
. "$(dirname "$0")/apt.sh"

found() {
	for dir in /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /usr/lib /usr/local/lib /usr/lib/llvm-19/lib $(echo "${LD_LIBRARY_PATH:-}" | tr : " "); do
		for name in libLLVM-19.so libLLVM-19.so.1 libLLVM.so.19.1; do
			[ -e "$dir/$name" ] && return 0
		done
	done
	return 1
}

found || { apt_install libllvm19 && found; } || echo "Going on without LLVM 19 (libLLVM.so.19.1): the reference evaluator runs everything, slowly." >&2
