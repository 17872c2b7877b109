#!/usr/bin/env bash
# Makes sure that Graphviz is there, with which gtc dot draws SVG and PNG. Installs it through apt where that is possible; otherwise says so.
set -u
. "$(dirname "$0")/apt.sh"
command -v dot >/dev/null 2>&1 || apt_install graphviz || echo "Going on without Graphviz: graphs are written as .dot text only." >&2
