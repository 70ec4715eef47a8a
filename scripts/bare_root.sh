#!/bin/sh
# SPDX-License-Identifier: MIT
# Tries the two commands of the README on a bare Debian 12: scripts/bare_root.sh FOLDER [COMMAND …], as root. Makes
# FOLDER with debootstrap, or uses the one that an earlier run left; takes over this machine's apt configuration, clones
# the commit that is checked out here into it, and runs there. The last line is that of ./quoll test.
set -eu

# In a mount and process name space of its own: nothing stays mounted, and nothing outside can be signalled.
if [ -z "${QUOLL_BARE_ROOT-}" ]; then
	QUOLL_BARE_ROOT=1 exec unshare --mount --pid --fork "$0" "$@"
fi
tree=$(cd "$(dirname "$0")/.." && pwd -P)
root=$1
shift
[ $# -gt 0 ] || set -- sh -c './quoll tutorials/01_first_steps.lua && ./quoll test'

[ -e "$root/etc/debian_version" ] ||
	debootstrap --variant=minbase --include=ca-certificates,git bookworm "$root" >&2
for file in /etc/resolv.conf /etc/hosts /etc/apt/apt.conf.d/* /etc/apt/sources.list /etc/apt/sources.list.d/*; do
	case $file in *packagekit* | *appstream* | *docker*) continue ;; esac
	[ ! -f "$file" ] || cp "$file" "$root$file"
done
[ -f /etc/apt/sources.list ] || rm -f "$root/etc/apt/sources.list"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || :
rm -rf "$root/quoll"
git clone --quiet "$tree" "$root/quoll"
git -C "$root/quoll" checkout --quiet "$(git -C "$tree" rev-parse HEAD)"

mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
	sh -c 'cd /quoll && exec "$@"' sh "$@"
