#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A call to the AMD driver hangs in `schedule` and in `suspend` without a daemon. The thread that
# makes it is part of their heartbeat, so the keeper releases what they hold.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi300x
# A call that hangs keeps its process in state D, where SIGKILL has no effect.
trap 'kfd_emu wake; end_jobs; stop_kfd_emu; rm -rf "$work"' EXIT
in_background keeper "$BUILD/gpreempt-keeper" --timeout 0.7

# taken_from PROGRAM PID
taken_from() {
	until_true said keeper "undone pid=$2 backend=amd" ||
		fail "$1 keeps $2 held while its call hangs: $(<"$work/keeper")"
	until_true is_running "$2" || fail "$1: $2 is held again while its call hangs"
	makes_progress "$2" || fail "$1: no progress"
}
either_is_held() {
	is_held "$first" || is_held "$second"
}

start_kfd_load --period 20000 --steps 5
service=$LOAD
start_kfd_load --steps 1
job=$LOAD
start_kfd_load --steps 1
first=$LOAD
start_kfd_load --steps 1
second=$LOAD

# The release of the job hangs.
in_background schedule "$GPREEMPT" schedule --lc "$service" --be "$job"
schedule=$JOB
until_true said schedule '^ready$' || fail "never ready: $(<"$work/schedule")"
resumes=$(kfd_count resume_queues)
kfd_emu 'delay resume_queues 60s'
until_true eval "((\$(kfd_count resume_queues) > $resumes))" || fail 'no release'
sleep 0.1
is_held "$job" || fail 'the release does not hang'

# The first hold of `suspend` takes effect, the second one hangs.
kfd_emu 'delay suspend_queues 60s 1 1'
in_background suspend "$GPREEMPT" suspend "$first" "$second" --no-daemon
suspend=$JOB
until_true either_is_held || fail "nothing is held: $(<"$work/suspend")"
is_held "$first" || { other=$first first=$second second=$other; }

taken_from schedule "$job"
taken_from suspend "$first"
! said keeper 'owner.killed' || fail "an owner was killed: $(<"$work/keeper")"

# The calls return. `suspend` holds again, or says why not; both put everything back.
kfd_emu wake
end_job INT "$schedule" || fail "schedule: exit $?: $(<"$work/schedule")"
kill -INT "$suspend" 2>/dev/null
wait "$suspend" || said suspend '^gpreempt: ' || fail "suspend: exit $?: $(<"$work/suspend")"
[[ $(records) == 0 ]] || fail 'a record is left'
for pid in "$service" "$job" "$first" "$second"; do
	ends_right "$pid"
done
finish
