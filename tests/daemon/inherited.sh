#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The parent of a forked program dies while it is held, and a child keeps its queues: the hold ends,
# and the child is a process of its own for every verb.
set -u
[[ -x ${GPREEMPTD-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1
export GPREEMPT_RUN=$work/run GPREEMPT_SOCKET=$work/run/gpreemptd.sock GPREEMPT_KFD=$work/no-kfd
mkdir -m 0755 "$GPREEMPT_RUN"
in_background daemon "$GPREEMPTD" --gpu nvidia
DAEMON=$JOB
until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
in_background events "$GPREEMPT" events --json

# fork_load: sets load and child; both share the queues, which the emulator lists under the parent.
fork_load() {
	start_load --fork --contexts 1
	load=$LOAD
	child=$(awk '/^child/ { print $2 }' "$EMU_TMP/$load")
	jobs_started+=("$child")
	until_true is_listed "$load" || fail "not listed: $("$GPREEMPT" ps)"
}
is_listed() {
	"$GPREEMPT" ps --json | jq -e "any(.[]; .pid == $1)" >/dev/null
}

fork_load
expect 0 '' 'suspend' "$GPREEMPT" suspend "$load"
is_held "$load" || fail 'not held'
kill_job "$load"
until_true is_running "$load" || fail "the child's queues stay held: $(<"$work/daemon")"
until_true is_listed "$child" || fail "the child is not listed: $("$GPREEMPT" ps)"
said daemon "^info task.inherited .*pid=$load heir=$child" || fail "the daemon said: $(<"$work/daemon")"
# shellcheck disable=SC2016 # until_true expands it
until_true eval 'said events "\"released\".*\"pid\":$child" && said events "\"task_in\".*\"pid\":$child"' ||
	fail "events: $(<"$work/events")"
expect 4 "gpreempt: *process $load*" 'resume of the parent' "$GPREEMPT" resume "$load"
expect 0 '' 'resume --all' "$GPREEMPT" resume --all
[[ $out == 'nothing was held' ]] || fail "resume --all: $out"

# The child for itself.
expect 0 '' 'set' "$GPREEMPT" set "$child" --class be
[[ $out != *'not seen'* ]] || fail "set: $out"
expect 0 '' 'suspend of the child' "$GPREEMPT" suspend "$child"
is_held "$load" || fail 'the child is not held'
expect 0 '' 'resume of the child' "$GPREEMPT" resume "$child"
until_true is_running "$load" || fail 'the child stays held'
kill "$child"

# suspend --for
fork_load
suspend_in_background timed "$load" --for 1m
kill_job "$load"
wait "$JOB" || fail "suspend --for: exit $?"
said timed "^$load (rm-load) has ended; it was held for " || fail "suspend --for: $(<"$work/timed")"
until_true is_running "$load" || fail "suspend --for: the child's queues stay held"

end_job TERM "$DAEMON" || fail "the daemon ended with $?"
is_running "$load" || fail 'held after the end of the daemon'
kill "$child"
finish
