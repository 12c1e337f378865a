#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What happens to a held process while it is held: it goes on with another program, or the wall clock
# of the machine jumps.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1

# Another program: its queues are gone. It is not said to have ended, and no record stays.
start_load --contexts 1
load=$LOAD
in_background owner "$GPREEMPT" suspend "$load" --no-daemon
until_true said owner '^held' || fail "not held: $(<"$work/owner")"
kill -USR1 "$load"
until_true eval "[[ \$(groups_of $load) == 0 ]]" || fail 'it does not execute another program'
kill -0 "$load" || fail 'it has ended'
sleep 0.3
kill -TERM "$JOB" 2>/dev/null
wait "$JOB" || fail "suspend: $(<"$work/owner")"
said owner 'has ended' && fail "says that it has ended: $(<"$work/owner")"
"$GPREEMPT" resume --all --no-daemon >"$work/resume" 2>&1 || fail "resume: $(<"$work/resume")"
[[ $(records) == 0 ]] || fail 'a record of a program that has no queues is left'
kill -9 "$load"

# The wall clock jumps 30 years forward and 60 back while a process is held for 8 s.
cat >"$work/jump.c" <<'END'
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);
	if (clock == CLOCK_REALTIME && !access(getenv("FORWARD"), F_OK))
		t->tv_sec += 946080000;
	if (clock == CLOCK_REALTIME && !access(getenv("BACK"), F_OK))
		t->tv_sec -= 946080000;
	return (int)r;
}
END
export FORWARD=$work/forward BACK=$work/back
if "$CC" -shared -fPIC -o "$work/jump.so" "$work/jump.c"; then
	start_load --contexts 1
	load=$LOAD
	in_background keeper env LD_PRELOAD="$work/jump.so" "$BUILD/gpreempt-keeper" --timeout 0.7
	in_background jumper env LD_PRELOAD="$work/jump.so" "$GPREEMPT" suspend "$load" --for 8s \
		--no-daemon
	until_true said jumper '^held' || fail "not held: $(<"$work/jumper")"
	for file in "$FORWARD" "$BACK"; do
		touch "$file"
		sleep 0.3
		rm "$file"
		is_held "$load" || fail "a jump of the wall clock ends a hold"
	done
	wait "$JOB" || fail "suspend: $(<"$work/jumper")"
	is_running "$load" || fail 'held after its time'
	took=$(sed -n 's/^released .* after \([0-9.]*\) s$/\1/p' "$work/jumper")
	awk -v took="$took" 'BEGIN { exit !(took >= 7.9) }' || fail "held for '$took' s: $(<"$work/jumper")"
	said keeper 'undone' && fail "the keeper: $(<"$work/keeper")"
	ends_right "$load"
fi
finish
