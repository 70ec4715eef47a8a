#!/bin/sh
# SPDX-License-Identifier: MIT
# A sweep by GNU parallel: shards side by side on this machine, or on several over ssh, then merged.
#   scripts/sweep_parallel.sh 8 study.lua [name=value …] [--timeout 10m …]
#   HOSTS=node1,node2 JOBS=1 scripts/sweep_parallel.sh 8 study.lua
# JOBS: shards at a time on each machine (default 1: timings are honest); they share its cores. HOSTS: as for
# parallel's --sshlogin (2/node1: two cores of node1), names of ssh only. The program ($QUOLL, else quoll on PATH) and
# the study must be at the same place on each. There, each shard works in a folder of its own, with its results file
# sent along and copied back: a file is never laid over another one's log. Calling it again runs only what is missing.
set -eu

die() { echo "sweep_parallel.sh: $*" >&2; exit 1; }

[ $# -ge 2 ] || die 'usage: sweep_parallel.sh NUMBER-OF-SHARDS study.lua [arguments]'
count=$1 study=$2
shift 2
case $count in '' | *[!0-9]* | 0*) die "wanted a number of shards, got '$count'" ;; esac
[ -f "$study" ] || die "$study: no such file"
: "${QUOLL:=quoll}" "${JOBS:=1}"
QUOLL=$(command -v "$QUOLL") || die 'no such program; set QUOLL'
if [ -n "${HOSTS-}" ]; then
	case ,$HOSTS, in *,:,* | */:,*) die 'HOSTS: wanted names of ssh, got : (localhost may be one)' ;; esac
	case $QUOLL in /*) ;; *) QUOLL=$PWD/$QUOLL ;; esac
	cd "$(dirname "$study")"
	study=$PWD/${study##*/}
	base=${study##*/}
else
	base=$study
fi
command -v parallel >/dev/null || die 'no GNU parallel; install it with: apt-get install parallel'
base=${base%.lua}

quoted() { printf "'%s' " "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
command="QUOLL_THREADS=\$(( (\$(nproc) + $JOBS - 1) / $JOBS )) $(quoted "$QUOLL")sweep $(quoted "$study")"
for argument; do command="$command$(quoted "$argument")"; done
command="$command--shard {}/$count --db $(quoted "$base.{}of$count.db")"

set -- --jobs "$JOBS" --joblog "$base.joblog" --line-buffer --tagstring 'shard {}'
if [ -n "${HOSTS-}" ]; then
	for i in $(seq "$count"); do [ -e "$base.${i}of$count.db" ] || : >"$base.${i}of$count.db"; done
	set -- "$@" --sshlogin "$HOSTS" --workdir ... --cleanup \
		--transferfile "$base.{}of$count.db" --return "$base.{}of$count.db"
	[ -z "${QUOLL_DATA-}" ] || set -- "$@" --env QUOLL_DATA
fi
status=0
seq "$count" | parallel "$@" "$command" || status=$?
set --
for i in $(seq "$count"); do
	file=$base.${i}of$count.db
	if [ -s "$file" ]; then set -- "$@" "$file"; else echo "sweep_parallel.sh: $file is missing" >&2; fi
done
[ $# -gt 0 ] || die 'no shard left a results file'
"$QUOLL" sweep merge "$@" || exit
exit $status
