#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt resume and doctor on the emulated AMD driver, beside a holder that lives and does not
# release: what they say is true, and the record stays until the release was seen.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
# shellcheck source=tests/cli/freezer.bash
. "$SRC/tests/cli/freezer.bash"
begin_kfd --gpu mi300x
trap 'thaw 2>/dev/null; end_jobs; remove_freezer; stop_kfd_emu; rm -rf "$work"' EXIT

start_kfd_load --queues 2
load=$LOAD
held_by="process $load (kfd-load) may still be held by process"

# The holder's RESUME is never answered: the process is taken from it, and the record stays.
suspend_in_background hangs "$load"
kfd_emu 'delay resume_queues 8s 1000'
expect 0 '' 'resume and a driver that does not answer the holder' "$GPREEMPT" resume "$load"
[[ $out == "released $load (kfd-load); process $JOB (gpreempt) held it and does not release it: it runs, and may hold it again; its undo record stays until process $JOB drops it or ends" ]] ||
	fail "a holder that hangs: '$out'"
is_running "$load" || fail 'it says released, and the process is held'
makes_progress "$load" || fail 'no progress after it was taken from a holder that hangs'
[[ $(records) == 1 ]] || fail 'the record of a holder that hangs is gone'
try "$GPREEMPT" doctor
[[ $out == *"-> run gpreempt resume $load; if this line stays, process $JOB does not answer,"* ]] ||
	fail "doctor only repeats its advice: $out"
kfd_emu clear_faults
kill_job "$JOB"
expect 0 '' 'resume --all after the end of a holder that hung' "$GPREEMPT" resume --all
[[ $(records) == 0 ]] || fail 'the record of a dead holder stays'

# Nothing helps: exit 1 names the process and the holder, again and again, and so does doctor.
suspend_in_background refused "$load"
kill -STOP "$JOB"
for fault in 'errno disable 5' 'ignore disable 0'; do # the driver refuses, or accepts and does nothing
	kfd_emu clear_faults
	kfd_emu "$fault 1000"
	try "$GPREEMPT" resume "$load"
	exits 1 "gpreempt: $held_by $JOB (gpreempt), which is stopped by a signal or a debugger; run kill -9 $JOB, then gpreempt resume $load: *" \
		"resume and a driver with '$fault'"
	[[ $out == '' ]] || fail "it says '$out', and nothing was released"
	is_held "$load" || fail 'released: this tests nothing'
	[[ $(records) == 1 ]] || fail 'the record is gone although nothing was released'
done
try "$GPREEMPT" doctor
[[ $out == *warning*"process $load (kfd-load)"*"process $JOB (gpreempt)"*'is stopped by a signal or a debugger'* ]] ||
	fail "doctor does not name a stopped process and its holder: $out"
kfd_emu clear_faults
expect 0 '' 'resume when the driver answers again' "$GPREEMPT" resume "$load"
is_running "$load" || fail 'the last resume left it held'
end_job CONT "$JOB" || fail "a holder that goes on: exit $?"
said refused 'was released by another process' || fail "the holder said: $(<"$work/refused")"
[[ $(records) == 0 ]] || fail 'the holder that goes on does not drop its record'

# A program without work shows nothing: that only the driver confirms the release is said, whether
# the driver tells the truth or not. With work there is more to see.
start_kfd_load --idle
for pid in "$LOAD" "$load"; do
	suspend_in_background asleep "$pid"
	kill -STOP "$JOB"
	try "$GPREEMPT" resume "$pid"
	exits 0 '' 'resume beside a stopped holder'
	[[ $pid == "$load" || $out == *'(only the driver confirms it, not every queue was seen to work since)' ]] ||
		fail "resume of a program without work: $out"
	[[ $pid == "$LOAD" || $out != *'only the driver'* ]] || fail "resume of a program that works: $out"
	end_job CONT "$JOB" || fail "a holder that goes on: exit $?"
done
suspend_in_background asleep "$LOAD"
kill -STOP "$JOB"
kfd_emu 'ignore disable 0 1000'
kfd_emu 'errno get_queue_snapshot 22 1000'
expect 0 '' 'resume of an idle program and a driver that lies' "$GPREEMPT" resume "$LOAD" --json
kfd_emu clear_faults
holds '.released[0].confirmed_by == "driver"' 'resume of an idle program and a driver that lies'
[[ $(records) == 1 ]] || fail 'the record of a holder that lives is gone'
kill_job "$JOB"
expect 0 '' 'resume --all after it' "$GPREEMPT" resume --all
is_running "$LOAD" || fail 'an idle program stays held'
stop_kfd_load "$LOAD"

# A holder with another undo file (of another user): "nothing was held" would be false. Before Linux
# 6.12.103 the holder traces the process, and no other process can look.
not_known="gpreempt: it is not known whether process $load is held"
for rule in old new; do
	kfd_emu "rule $rule"
	GPREEMPT_UNDO=$work/other suspend_in_background elsewhere "$load"
	[[ $rule == old ]] || kfd_emu 'errno get_queue_snapshot 5 100000'
	for what in "$load" --all; do
		try "$GPREEMPT" resume "$what"
		if [[ $rule == old ]]; then
			exits 1 "$not_known: process $JOB (gpreempt) traces it; end that first" "resume $what and a holder with another undo file"
		else
			exits 1 "$not_known: the driver does not say whether it has a debug session (Input/output error)" "resume $what and a driver that does not say"
		fi
		[[ $out == '' ]] || fail "resume $what, rule $rule: '$out'"
	done
	is_held "$load" || fail 'released: this tests nothing'
	kfd_emu clear_faults
	end_job INT "$JOB" || fail "rule $rule, the holder: exit $?"
	expect 0 '' 'resume of what is not held' "$GPREEMPT" resume "$load"
	[[ $out == 'nothing was held' ]] || fail "rule $rule: resume said '$out'"
done

# A dead holder, and a driver that does not say whether it has ended the session: the record stays.
for rule in old new; do
	kfd_emu "rule $rule"
	suspend_in_background died "$load"
	kfd_emu 'errno get_queue_snapshot 5 100000'
	kill_job "$JOB"
	for what in "$load" --all; do
		try "$GPREEMPT" resume "$what"
		exits 1 "$not_known: the driver does not say whether it has a debug session (Input/output error)" "resume $what after a holder that died"
		[[ $out == '' ]] || fail "resume $what after a holder that died: '$out'"
		[[ $(records) == 1 ]] || fail "rule $rule: the record is gone, and it is not known what became of the process"
	done
	kfd_emu clear_faults
	expect 0 '' 'resume when the driver says it' "$GPREEMPT" resume "$load"
	[[ $out == "released $load (kfd-load); process $JOB held it and ended without releasing it" ]] ||
		fail "rule $rule: resume said '$out'"
	[[ $(records) == 0 ]] || fail 'the record of a dead holder stays'
done

# A frozen holder looks like one that sleeps.
if can_freeze; then
	suspend_in_background frozen "$load"
	freeze "$JOB" || fail 'not frozen'
	try "$GPREEMPT" doctor
	[[ $out == *warning*"process $load (kfd-load)"*"process $JOB (gpreempt)"*'is frozen by its cgroup'* ]] ||
		fail "doctor does not name a frozen holder: $out"
	expect 0 '' 'resume and a frozen holder' "$GPREEMPT" resume "$load"
	[[ $out == "released $load (kfd-load); process $JOB (gpreempt) held it and is frozen by its cgroup, so its undo record stays until that process runs or ends" ]] ||
		fail "a frozen holder: '$out'"
	is_running "$load" || fail 'it says released, and the process is held by a frozen one'
	makes_progress "$load" || fail 'no progress beside a frozen holder'
	thaw
	wait "$JOB" || fail "a holder that was frozen: exit $?"
	said frozen 'was released by another process' || fail "a frozen holder said: $(<"$work/frozen")"
	is_running "$load" || fail 'a holder that was frozen holds again'
	[[ $(records) == 0 ]] || fail 'the record of a holder that was frozen stays'
else
	echo 'skipped: no cgroup v2 can be made and frozen here'
fi

# The keeper has claimed the record of a dead holder, and looks at the process: it did not hold it.
suspend_in_background claimed "$load"
holder=$JOB
in_background keeper "$BUILD/gpreempt-keeper"
kfd_emu 'delay get_queue_snapshot 600ms 1000'
kill_job "$holder"
sleep 0.3
expect 0 '' 'resume while the keeper undoes' "$GPREEMPT" resume "$load"
kfd_emu clear_faults
[[ $out == "released $load (kfd-load)"* && $out != *gpreempt-keeper* ]] || fail "resume while the keeper undoes: '$out'"
kill_job "$JOB"
is_running "$load" || fail 'held after the keeper'

# The keeper names the process and the holder in its log, and kills the holder that cannot release.
suspend_in_background killed "$load"
holder=$JOB
kfd_emu 'errno disable 5 100000'
in_background keeper "$BUILD/gpreempt-keeper" --timeout 0.7
kill -STOP "$holder"
until_true said keeper "^warn undo.failed pid=$load owner=$holder errno=5 why=" || fail "keeper: $(<"$work/keeper")"
until_true said keeper "^error owner.killed pid=$holder process=$load" || fail "keeper: $(<"$work/keeper")"
kfd_emu clear_faults
until_true is_running "$load" || fail 'held by the dead'
ends_right "$load"
# "nothing was held" needs a look at every GPU: here those of another driver cannot be opened.
nobody=65534
chmod 755 "$work" "$KFD_MNT/.."
install -d -o $nobody "$work/nobody"
install -m 600 /dev/null "$work/nvidiactl"
as_nobody() {
	GPREEMPT_UNDO=$work/nobody/undo setpriv --reuid $nobody --regid $nobody --clear-groups "$@"
}
if as_nobody test -x "$GPREEMPT" && as_nobody test -w "$KFD_MNT/kfd"; then
	expect 0 '' 'resume --all of a user' as_nobody "$GPREEMPT" resume --all
	[[ $out == 'nothing was held' ]] || fail "resume --all of a user: '$out'"
	GPREEMPT_NVIDIACTL=$work/nvidiactl expect 3 \
		'gpreempt: not all GPUs could be examined; processes on them may be held: *' \
		'resume --all without rights on a driver' as_nobody "$GPREEMPT" resume --all
	[[ ! $out ]] || fail "resume --all without rights on a driver: '$out'"
else
	echo 'not tried: the emulator is not accessible for another user'
fi
finish
