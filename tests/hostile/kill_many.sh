#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill_many.sh GPU ROUNDS [FOLDER]: ROUNDS kills and stops with hostile answers (test_kill GPU
# hostile), in parts of 250 rounds. Part k has the seed GPREEMPT_SEED + k (default 1), and
# GPREEMPT_JOBS parts (default 4) run at a time. FOLDER keeps the output of each part; a part whose
# output says that it ended well is not repeated, so a run of the same programs that was interrupted
# goes on.
set -u
gpu=$1 rounds=$2 folder=${3-}
part=250 jobs=${GPREEMPT_JOBS-4} first=${GPREEMPT_SEED-1}
((part > rounds)) && part=$rounds
parts=$(((rounds + part - 1) / part))
if [[ ! $folder ]]; then
	temporary=$(mktemp -d)
	folder=$temporary
	trap 'rm -rf "$temporary"' EXIT
fi
programs=$(cat "$TEST_KILL" "$GPREEMPTD" "$GPREEMPT" "$BUILD/gpreempt-keeper" | sha256sum | cut -c1-16)
folder=$folder/$programs
mkdir -p "$folder"

one() { # SEED
	local log=$folder/$gpu.$1
	grep -qs '^ended well$' "$log" && return
	if GPREEMPT_SEED=$1 "$TEST_KILL" "$gpu" hostile "$part" >"$log" 2>&1; then
		echo 'ended well' >>"$log"
	else
		echo "seed $1: exit status $?"
	fi
}
export -f one
export gpu part folder TEST_KILL

seq "$first" $((first + parts - 1)) | xargs -P "$jobs" -I{} bash -c 'one {}'
bad=0 answers=0
for ((seed = first; seed < first + parts; seed++)); do
	log=$folder/$gpu.$seed
	answers=$((answers + $(sed -n 's/ hostile answers of the driver$//p' "$log" | tail -1)))
	grep -q '^ended well$' "$log" && continue
	((bad++))
	echo "--- $gpu, seed $seed, $part rounds"
	tail -60 "$log"
done
echo "$gpu: $((parts * part)) kills and stops in $parts parts, seeds $first to $((first + parts - 1))," \
	"$answers hostile answers, $bad parts failed"
((bad == 0))
