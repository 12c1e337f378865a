#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A service on an AMD GPU that debugs one process at a time, without debugfs: its work cannot be
# seen, and everybody who could wait for it in vain says so, once.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu vega20
start_kfd_load --period 20000 --steps 5
service=$LOAD
start_kfd_load --queues 2 --steps 3
job=$LOAD
debugfs=$GPREEMPT_KFD_DEBUGFS

export GPREEMPT_KFD_DEBUGFS=$work/none
try "$GPREEMPT" schedule --lc "$service" --be "$job" --for 2s
exits 0 "gpreempt: the work of process $service cannot be seen*mount debugfs" 'schedule'
one_sentence 'schedule'
try "$GPREEMPT" doctor
[[ $out == *'warning  activity'*'work of services cannot be seen'*'mount debugfs'* ]] || fail "doctor: $out"

if [[ -x ${GPREEMPTD-} ]]; then
	mkdir "$work/run"
	unset GPREEMPT_UNDO GPREEMPT_SOCKET
	export GPREEMPT_RUN=$work/run
	in_background daemon "$GPREEMPTD" --gpu amd --policy priority
	until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
	until_true "$GPREEMPT" set "$service" --class lc >/dev/null
	until_true said daemon "^warn activity.unknown .*pid=$service" || fail "not in the log: $(<"$work/daemon")"
	sleep 0.5 # as many tries as fit
	[[ $(grep -c activity.unknown "$work/daemon") == 1 ]] || fail "more than once: $(<"$work/daemon")"
	end_job TERM "$JOB" || fail "the daemon ended with $?"
fi

# Where it can be seen nobody says anything.
export GPREEMPT_KFD_DEBUGFS=$debugfs GPREEMPT_UNDO=$work/undo GPREEMPT_SOCKET=$work/no-daemon
expect 0 '' 'schedule with debugfs' "$GPREEMPT" schedule --lc "$service" --be "$job" --for 1s
ends_right "$service"
ends_right "$job"
finish
