#!/bin/sh
# SPDX-License-Identifier: MIT
#SBATCH --job-name=quoll-sweep
#SBATCH --requeue
#SBATCH --open-mode=append
# A sweep on a Slurm cluster: an array job with one task per shard, then a job that merges the results files.
#   scripts/sweep_slurm.sh 16 study.lua [name=value …] [--timeout 10m …]
# submits both; options for sbatch go into SBATCH_FLAGS, as in
#   SBATCH_FLAGS='--partition=short --cpus-per-task=8 --mem=16G --time=4:00:00' scripts/sweep_slurm.sh 16 study.lua
# The program is $QUOLL, else quoll on PATH, else ./quoll of the folder where this was called. Calling it again after
# a failure or the end of the time runs only what is missing. Each task has a results file of its own, study.3of16.db
# beside the study; that folder must be seen by all nodes and its file system must have locks (a Lustre mounted
# without flock has none).
set -eu

die() { echo "sweep_slurm.sh: $*" >&2; exit 1; }

find_program() {
	[ -z "${QUOLL-}" ] || return 0
	if command -v quoll >/dev/null; then
		QUOLL=quoll
	elif [ -x "${SLURM_SUBMIT_DIR:-.}/quoll" ]; then
		QUOLL=${SLURM_SUBMIT_DIR:-.}/quoll
	else
		die 'no quoll on PATH; set QUOLL to the program'
	fi
}

# Inside of a task: the index counts from the array's first, so that --array=0-15 and 1-16 are the same.
run_shard() {
	study=$1
	shift
	count=${SLURM_ARRAY_TASK_COUNT:?is not set: this is no array job}
	index=$((SLURM_ARRAY_TASK_ID - ${SLURM_ARRAY_TASK_MIN:-1} + 1))
	export QUOLL_THREADS="${SLURM_CPUS_PER_TASK:-1}"
	exec srun --ntasks=1 "$QUOLL" sweep "$study" "$@" --shard "$index/$count" --db "${study%.lua}.${index}of$count.db"
}

submit() {
	[ $# -ge 2 ] || die 'usage: sweep_slurm.sh NUMBER-OF-SHARDS study.lua [arguments]'
	count=$1 study=$2
	shift
	case $count in '' | *[!0-9]* | 0*) die "wanted a number of shards, got '$count'" ;; esac
	[ -f "$study" ] || die "$study: no such file"
	export QUOLL
	# shellcheck disable=SC2086 # several options
	job=$(sbatch --parsable ${SBATCH_FLAGS-} --array="1-$count" "$0" "$@")
	job=${job%%;*}
	QUOLL_SWEEP_FILES=
	for i in $(seq "$count"); do
		QUOLL_SWEEP_FILES="$QUOLL_SWEEP_FILES${QUOLL_SWEEP_FILES:+:}${study%.lua}.${i}of$count.db"
	done
	export QUOLL_SWEEP_FILES
	# shellcheck disable=SC2086
	merge=$(sbatch --parsable ${SBATCH_FLAGS-} --dependency="afterany:$job" "$0" --merge)
	echo "shards: job $job; merge into ${study%.lua}.db: job ${merge%%;*}"
}

# Files of shards that never began are not there.
merge() {
	IFS=:
	set -f
	for file in ${QUOLL_SWEEP_FILES:?is not set}; do
		if [ -f "$file" ]; then set -- "$@" "$file"; else echo "sweep_slurm.sh: $file is missing" >&2; fi
	done
	[ $# -gt 0 ] || die 'no shard left a results file'
	exec "$QUOLL" sweep merge "$@"
}

find_program
if [ "${1-}" = --merge ]; then
	shift
	merge
elif [ -n "${SLURM_ARRAY_TASK_ID-}" ]; then
	run_shard "$@"
else
	submit "$@"
fi
