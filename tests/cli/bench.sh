#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt bench on a simulated GPU, beside gpreempt resume: bench releases the process and ends.
set -u
# shellcheck source=tests/cli/simgpu.bash
. "$SRC/tests/cli/simgpu.bash"
start_simgpu --devices 1
start_simload train --kernel 5ms
train=$LOAD

has_record() {
	[[ $(records) == 1 ]]
}

# resume_beside NAME ARGS...: resume while bench with these options runs; sets JOB.
resume_beside() {
	local name=$1
	shift
	in_background "$name" "$GPREEMPT" bench "$train" "$@"
	until_true has_record || fail "$name: no record: $(<"$work/$name")"
	sleep 1 # also the measurement of a fresh start is over
	expect 0 '' "$name: resume" "$GPREEMPT" resume "$train"
	[[ $out == "released $train (gpreempt), which $JOB (gpreempt) held" ]] || fail "$name: resume said: $out"
	wait "$JOB" || fail "$name: bench ends with $?: $(<"$work/$name")"
	[[ $(records) == 0 ]] || fail "$name: a record stays"
	is_loose "$train" || fail "$name: still held"
	said "$name" "^gpreempt: another process released $train (train)" || fail "$name: bench said: $(<"$work/$name")"
}

# In a short hold or between two, and in a long hold.
resume_beside short -n 100000
said short 'success: hold 100.0 %, release 100.0 %' || fail "short: bench said: $(<"$work/short")"
resume_beside long -n 2 --hold-ms 10000
said long ': held 1 and released 0 times' || fail "long: bench said: $(<"$work/long")"

# The command of --online would be timed wrongly: it ends, too.
SECONDS=0
resume_beside online -n 1 --hold-ms 0 --online 'exec sleep 60'
((SECONDS < 30)) || fail "online: the command ran for $SECONDS s"
said online 'held  *-$' || fail "online: bench said: $(<"$work/online")"
finish
