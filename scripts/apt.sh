# apt_install PACKAGE: installs a Debian package where apt and the rights for it are there; otherwise says what to run, and fails.
# Sourced by llvm.sh and graphviz.sh.
apt_install() {
	local install="apt-get install -y --no-install-recommends $1" as_root=""
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "$1 is not installed; install it with your package manager." >&2
		return 1
	fi
	if [ "$(id -u)" != 0 ]; then
		if ! sudo -n true 2>/dev/null; then
			echo "$1 is not installed. Run: sudo $install" >&2
			return 1
		fi
		as_root="sudo -n"
	fi
	echo "installing $1 …" >&2
	export DEBIAN_FRONTEND=noninteractive
	if { $as_root $install || { $as_root apt-get update && $as_root $install; }; } >/dev/null 2>&1; then
		return 0
	fi
	echo "$1 could not be installed; on Debian and Ubuntu: $install" >&2
	return 1
}
