#!/bin/sh
# SPDX-License-Identifier: MIT
# Tries the two commands of the README on a bare Debian 12, as root.
#   scripts/bare_root.sh FOLDER [COMMAND …]       both (or another command); the last line is that of ./quoll test
#   scripts/bare_root.sh FOLDER --roots [PATTERN] the first one in roots where something is there already: gcc, clang,
#       build-essential and cmake, every package that the launcher wants but one, for each in turn; a line for each root
# FOLDER keeps a root made by debootstrap, the packages that apt-get loaded, and the logs. Each run begins with that root
# (an overlay takes what is written) and a clone of the commit that is checked out here; apt's and pip's configuration are
# those of this machine.
set -eu

# In a mount and process name space of its own: nothing stays mounted, and nothing outside can be signalled.
if [ -z "${QUOLL_BARE_ROOT-}" ]; then
	QUOLL_BARE_ROOT=1 exec unshare --mount --pid --fork "$0" "$@"
fi
tree=$(cd "$(dirname "$0")/.." && pwd -P)
mkdir -p "$1" && folder=$(cd "$1" && pwd -P)
root=$folder/root
shift
first='./quoll tutorials/01_first_steps.lua'

prepare() {
	base=$folder/base
	[ -e "$base/etc/debian_version" ] ||
		debootstrap --variant=minbase --include=ca-certificates,git bookworm "$base" >&2
	for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/apt.conf.d/* /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		case $file in *packagekit* | *appstream* | *docker*) continue ;; esac
		[ ! -f "$file" ] || cp "$file" "$base$file"
	done
	[ -f /etc/apt/sources.list ] || rm -f "$base/etc/apt/sources.list"
	cp /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/certs/" 2>/dev/null || :
	rm -rf "$base/quoll"
	git clone --quiet "$tree" "$base/quoll"
	git -C "$base/quoll" checkout --quiet "$(git -C "$tree" rev-parse HEAD)"
	mkdir -p "$folder/archives" "$folder/logs" "$root" "$folder/overlay"
}

# A root with nothing in it but what the base has.
enter() {
	rm -rf "$folder/overlay/"*
	mkdir "$folder/overlay/upper" "$folder/overlay/work"
	mount -t overlay -o "lowerdir=$base,upperdir=$folder/overlay/upper,workdir=$folder/overlay/work" none "$root"
	mount --rbind /dev "$root/dev"
	mount -t proc proc "$root/proc"
	mount --bind "$folder/archives" "$root/var/cache/apt/archives"
}

leave() { umount -R "$root"; }

inside() {
	chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb DEBIAN_FRONTEND=noninteractive \
		sh -c 'cd /quoll && exec "$@"' sh "$@"
}

with_packages() { inside sh -c "apt-get update && apt-get -o Dpkg::Options::=--force-unsafe-io install -y --no-install-recommends $*"; }

# try NAME PACKAGE …: the README's first command in a root that has these packages.
try() {
	name=$1 log=$folder/logs/$1.log
	shift
	# shellcheck disable=SC2254 # a pattern
	case $name in $pattern) ;; *) return 0 ;; esac
	enter
	start=$(date +%s) verdict=pass
	with_packages "$@" >"$log" 2>&1 || verdict='FAIL (its own packages)'
	installed=$(date +%s)
	[ "$verdict" != pass ] || inside sh -c "$first" >>"$log" 2>&1 || verdict=FAIL
	printf '%-28s %s, %d s after %d s\n' "$name" "$verdict" $(($(date +%s) - installed)) $((installed - start))
	[ "$verdict" = pass ] || failed=$((failed + 1))
	leave
}

# The packages of the launcher's list that the program wants.
wanted() { awk '/^(tool|build|run) / { print $3 }' "$tree/scripts/packages"; }

roots() {
	pattern=${1-*} failed=0
	try gcc gcc
	try clang clang
	try build-essential-cmake build-essential cmake
	for one in $(wanted); do
		# shellcheck disable=SC2046 # a word for each package
		try "all-but-$one" $(wanted | grep -vx "$one")
	done
	[ $failed = 0 ] || exit 1
}

prepare
if [ "${1-}" = --roots ]; then
	shift
	roots "$@"
else
	[ $# -gt 0 ] || set -- sh -c "$first && ./quoll test"
	enter
	inside "$@"
fi
