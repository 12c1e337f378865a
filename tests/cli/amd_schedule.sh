#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt schedule on the emulated AMD driver: best-effort work is held while a service works, and
# everything is as it was afterwards, however it ends.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi250

schedule_in_background() {
	in_background schedule "$GPREEMPT" schedule "$@"
	until_true said schedule '^ready$' || fail "never ready: $(<"$work/schedule")"
}
suspends() {
	state ".processes[] | select(.process == $1) | .suspends"
}

start_kfd_load --period 20000 --steps 5
service=$LOAD
start_kfd_load --queues 2 --steps 3
job=$LOAD
start_kfd_load --steps 3
stranger=$LOAD

schedule_in_background --lc "$service" --be "$job"
until_true eval "((\$(suspends $job) >= 3))" || fail 'the job is never held'
makes_progress "$job" || fail 'the job makes no progress'
[[ $(suspends "$service") == 0 ]] || fail 'the service was held'
[[ $(suspends "$stranger") == 0 ]] || fail 'a process that was not named was held'
end_job INT "$JOB" || fail "Ctrl-C: exit $?"
said schedule '^AMD gfx90a #0, policy priority: [1-9]' || fail "statistics: $(<"$work/schedule")"
said schedule "$job  be " || fail "statistics: $(<"$work/schedule")"
# What this GPU does not tell has no column.
! said schedule 'RUN TIME' || fail "run times of a GPU that has none: $(<"$work/schedule")"
until_true is_running "$job" || fail 'the job is left held'
until_true is_let_go "$job" || fail 'still attached'
[[ $(records) == 0 ]] || fail 'a record stays'

# Killed: the driver releases, the next run drops the record.
schedule_in_background --lc "$service" --be "$job"
until_true is_held "$job" || fail 'the job is never held'
kill_job "$JOB"
until_true is_running "$job" || fail 'held by the dead'
makes_progress "$job" || fail 'no progress after the kill'

# Somebody resumes: it ends.
schedule_in_background --lc "$service" --be "$job"
until_true eval "[[ \$(records) -ge 1 ]]" || fail 'no record'
expect 0 '' 'resume --all' "$GPREEMPT" resume --all
wait "$JOB" || fail "resumed by another: exit $?"
said schedule 'another process released a task, .* (gpreempt resume), so this schedule has ended; all tasks were put back' || fail "$(<"$work/schedule")"
until_true is_running "$job" || fail 'held again after resume'

# The same, and the driver refuses every release: no sentence says that the tasks were put back.
schedule_in_background --lc "$service" --be "$job"
until_true is_held "$job" || fail 'the job is never held'
kfd_emu 'errno resume_queues 5 100000'
kfd_emu 'errno disable 5 100000'
try "$GPREEMPT" resume --all
[[ $status == 1 ]] || fail "a release that fails for ever: exit $status, '$out', '$err'"
wait "$JOB"
code=$?
[[ $code == 1 ]] || fail "a release that fails for ever: schedule ends with $code: $(<"$work/schedule")"
said schedule 'so this schedule has ended$' || fail "a release that fails for ever: $(<"$work/schedule")"
! said schedule 'put back$\|released now' || fail "it says that the tasks were put back: $(<"$work/schedule")"
kfd_emu clear_faults
expect 0 '' 'resume --all when the driver answers again' "$GPREEMPT" resume --all
until_true is_running "$job" || fail 'it stays held when the driver answers again'

# One queue as a task of its own; JSON; wrong arguments.
expect 0 '' 'one queue' "$GPREEMPT" schedule --lc "$service" --be "$job:1" --for 500ms --json
holds ".[0].policy == \"priority\" and (.[0].tasks | map(.pid) | sort) == ([$service, $job] | sort) and
	all(.[0].tasks[]; has(\"run_ns\") | not)" 'schedule --json'
# A driver that refuses every suspend: nothing was held, which exit 1 and the counters say.
kfd_emu 'errno suspend_queues 5 100000'
try "$GPREEMPT" schedule --lc "$service" --be "$job" --for 500ms --json
kfd_emu clear_faults
[[ $status == 1 && $err == gpreempt:* ]] || fail "a driver that refuses every suspend: exit $status, '$err'"
holds 'all(.[].tasks[]; .held_ns == 0) and .[0].failures > 0' 'what was never held was not held'
is_running "$job" || fail 'held after all'

expect 4 "gpreempt: process $job has no compute queue 4711" 'no such queue' "$GPREEMPT" schedule --be "$job:4711"
expect 4 "gpreempt: process $$ *" 'a process without queues' "$GPREEMPT" schedule --be "$$"
for pid in "$service" "$job" "$stranger"; do
	ends_right "$pid"
done
finish
