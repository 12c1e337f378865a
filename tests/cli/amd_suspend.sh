#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# suspend, resume and bench on the emulated AMD driver: what is held stands still, is released in
# every way, and has the right result afterwards.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi250 --gpu navi31

start_kfd_load --queues 2 --steps 3
load=$LOAD
for signal in INT TERM HUP; do
	suspend_in_background by_signal "$load"
	is_held "$load" || fail 'it says held, and is not'
	stands_still "$load" || fail 'a held process makes progress'
	[[ $(records) == 1 ]] || fail 'no record while it is held'
	kill -$signal "$JOB"
	wait "$JOB" || fail "SIG$signal: exit $?"
	said by_signal '^released [0-9]* (kfd-load) on AMD gfx90a #0 after' || fail "$(<"$work/by_signal")"
	makes_progress "$load" || fail "not released by SIG$signal"
	[[ $(records) == 0 ]] || fail 'the record stays'
	is_let_go "$load" || fail 'still attached'
done

expect 0 '' 'suspend --for' "$GPREEMPT" suspend "$load" --for 200ms --json
jq -es 'map(.event) == ["held","released"] and .[1].held_us > 190000 and all(.[]; .pid == '"$load"')' \
	"$work/out" >/dev/null || fail "events: $out"

# How: --type and --grace, and what the driver gets of it: 1,000 clocks, or all ones for its own.
grace() {
	state ".processes[] | select(.process == $1) | .grace"
}
expect 0 '' '--type save' "$GPREEMPT" suspend "$load" --type save --for 50ms
[[ $(grace "$load") == $((0xffffffff)) ]] || fail "--type save: $(grace "$load")"
while read -r expected args; do
	# shellcheck disable=SC2086
	expect 0 '' "$args" "$GPREEMPT" suspend "$load" $args --for 50ms
	[[ $out == "held $load "*"released $load "* ]] || fail "$args: $out"
	[[ $(grace "$load") == "$expected" ]] || fail "$args: the driver got $(grace "$load")"
done <<-'END'
	255 --type drain
	1 --type drain --grace 1
	254 --grace 254
END
start_kfd_load --gpu 1 # whose firmware takes no notice of a grace
try "$GPREEMPT" suspend "$LOAD" --type drain --for 50ms
exits 2 "gpreempt: AMD gfx1100 #1 has no preemption type 'drain'; it offers: save" 'drain on MES'
expect 0 '' 'save on MES' "$GPREEMPT" suspend "$LOAD" --type save --for 50ms
try "$GPREEMPT" suspend "$LOAD" --grace 4
exits 2 'gpreempt: AMD gfx1100 #1 has no preemption type with a grace; leave out --grace' 'a grace on MES'
stop_kfd_load "$LOAD"
(($(kfd_count infinite_grace) == 0)) || fail 'a grace that never ends'
try "$GPREEMPT" suspend "$load" --type reset
exits 2 'gpreempt: --type reset is not offered: the program would lose its work*' '--type reset'
one_sentence '--type reset'
for args in '--grace 0' '--grace 256' '--grace x'; do
	# shellcheck disable=SC2086
	expect 2 '*--grace takes a whole number from 1 to 255*' "$args" "$GPREEMPT" suspend "$load" $args
done
try "$GPREEMPT" suspend "$load" --type save --grace 4
exits 2 'gpreempt: --grace goes with --type drain; leave it out' '--type save with a grace'
try "$GPREEMPT" suspend "$load" --type softly
exits 2 "gpreempt: AMD gfx90a #0 has no preemption type 'softly'; it offers: save, drain" 'a type that the device does not offer'

# One queue: the other runs on.
suspend_in_background one "$load" --queue 1
[[ $(state "[.processes[].queues[] | select(.pid == $load and .suspended) | .queue]") == '[1]' ]] ||
	fail '--queue held something else'
end_job INT "$JOB"
expect 4 "gpreempt: process $load has no queue 4711*" 'a queue that is not there' "$GPREEMPT" suspend "$load" --queue 4711

# A second holder is refused; queues says who has it, and lists what it can.
suspend_in_background first "$load"
first=$JOB
for verb in suspend 'bench -n 2' 'schedule --for 1s --be'; do
	# shellcheck disable=SC2086
	expect 1 "gpreempt: process $load is already held or scheduled by process $first (gpreempt)*" "$verb" "$GPREEMPT" $verb "$load"
done
is_held "$load" || fail 'the first hold is gone'
try "$GPREEMPT" queues "$load" --json
exits 0 "gpreempt: some values are not known: process $load is already held or scheduled by process $first (gpreempt)*" queues
holds '[.queues[].id] == [0,1] and all(.queues[]; has("held") or has("pending") | not)' 'queues of a held process'
try "$GPREEMPT" ps --for 1ms --json
holds ".[] | select(.pid == $load) | (has(\"state\") | not) and .owner == $first" 'ps says who holds it'

# resume takes the record away; the holder lets go and says so.
expect 0 '' resume "$GPREEMPT" resume "$load"
[[ $out == "released $load (kfd-load), which $first (gpreempt) held" ]] || fail "resume said '$out'"
until_true is_running "$load" || fail 'resume does not release it'
wait "$first" || fail "the holder: exit $?"
said first 'was released by another process' || fail "the holder said: $(<"$work/first")"
makes_progress "$load" || fail 'no progress after resume'
expect 0 '' 'resume of what is not held' "$GPREEMPT" resume "$load"
[[ $out == 'nothing was held' ]] || fail "resume said '$out'"
suspend_in_background again "$load"
expect 0 '' 'resume --all' "$GPREEMPT" resume --all --json
holds ".released | map(.pid) == [$load]" 'resume --all --json'
until_true is_running "$load" || fail 'resume --all does not release it'
wait "$JOB"

# From one that is stopped it is taken away; when it goes on, it sees that and ends.
suspend_in_background stopped "$load"
kill -STOP "$JOB"
until_true eval "[[ \$(awk '{ sub(/.*\) /, \"\"); print \$1 }' /proc/$JOB/stat) == T ]]" || fail 'not stopped'
expect 0 '' 'resume and a holder that is stopped' "$GPREEMPT" resume "$load"
[[ $out == "released $load (kfd-load); process $JOB (gpreempt) held it and is stopped by a signal or a debugger, so its undo record stays until that process runs or ends" ]] ||
	fail "resume said '$out'"
[[ $(records) == 1 ]] || fail 'the record of a living holder was dropped by another process'
is_running "$load" || fail 'it stays in the hands of one that is stopped'
end_job CONT "$JOB" || fail "a holder that goes on: exit $?"
[[ $(records) == 0 ]] || fail 'a holder that goes on does not drop its record'
is_running "$load" || fail 'a holder that goes on holds again'
makes_progress "$load" || fail 'no progress after a holder that was stopped'

# A holder that is killed: the driver releases, and the record is dropped by who comes next.
suspend_in_background killed "$load"
kill_job "$JOB"
until_true is_running "$load" || fail 'held by the dead'
expect 0 '' 'resume --all after a kill' "$GPREEMPT" resume --all
[[ $(records) == 0 ]] || fail 'the record stays'

# Released by us, evicted by the driver: it is said, and no failure.
suspend_in_background evicted "$load"
kfd_emu evict "$load"
sleep 0.2
end_job INT "$JOB" || fail "a release of an evicted process: exit $?"
said evicted "^released $load .*; evicted by the driver .* ago: it runs when the driver restores it" ||
	fail "an eviction is not told: $(<"$work/evicted")"
kfd_emu restore "$load"
makes_progress "$load" || fail 'no progress after an eviction'

# bench.
expect 0 '' bench "$GPREEMPT" bench "$load" -n 10 --hold-ms 1 --json
holds '.hold.tried == 10 and .hold.done == 10 and .release.done == 10 and .online == null and
	([.hold, .release][] | .answer_us | .min <= .average and .average <= .max and .p50 <= .p99) and
	([.hold, .release][] | [.answer_histogram[].count] | add == 10)' 'bench --json'
until_true is_running "$load" || fail 'bench leaves it held'
expect 0 '*out*' 'bench --online' "$GPREEMPT" bench "$load" --count 5 --histogram --online 'echo out; exit 3'
[[ $out == *'success: hold 100.0 %, release 100.0 %'*average*distribution*'|*'* ]] || fail "bench: $out"
[[ $out =~ held\ +[0-9.]+\ [a-z]+,\ exit\ 3.*'not held'\ +[0-9.]+\ [a-z]+,\ exit\ 3 ]] || fail "--online: $out"
# The command runs while it is held, and then while it is not.
expression="[.processes[].queues[] | select(.pid == $load and .suspended)] | length"
echo "jq '$expression' $KFD_MNT/state >>$work/seen" >"$work/online"
try "$GPREEMPT" bench "$load" -n 1 --json --online "sh $work/online"
holds '.online.held.exit == 0 and .online.not_held.exit == 0 and .online.held.took_us > 0' '--online --json'
[[ $(paste -sd' ' "$work/seen") == '2 0' ]] || fail "held while the command ran: $(<"$work/seen")"
kfd_emu 'errno suspend_queues 5 1000'
try "$GPREEMPT" bench "$load" -n 2
kfd_emu clear_faults
[[ $status == 1 && $out == *'holds failed, the first with: '* ]] || fail "a driver that refuses: $status $out $err"
[[ $out == *': held and released 0 times'*'success: hold 0.0 %, release -'* ]] ||
	fail "bench counts what was never held: $out"
# A driver that asks to try again, for ever: each hold is tried for seconds.
kfd_emu 'errno suspend_queues 11 100000'
try timeout 120 "$GPREEMPT" bench "$load" -n 1000 --json
kfd_emu clear_faults
exits 1 '*' 'bench with a driver that asks to try again'
holds '.hold.tried >= 1 and .hold.tried < 10 and .hold.done == 0 and .hold.error != null' \
	'the end after failures'
kfd_emu 'ignore suspend_queues 2 100000' # the driver confirms it and does nothing
try "$GPREEMPT" bench "$load" -n 2
[[ $status == 1 && $out != *'hold 100.0 %'* ]] || fail "bench believes the driver: $status $out $err"
try "$GPREEMPT" suspend "$load" --for 100ms
kfd_emu clear_faults
# On a busy machine the program may seem to stand still at first; that only the driver confirms it is said.
[[ $status == 1 && ($out != *held* || $out == *'(only the driver confirms it'*) && $err == *'goes on working'* ]] ||
	fail "suspend believes the driver: $status '$out' '$err'"
until_true is_running "$load" || fail 'held by a suspend that failed'
suspend_in_background refused "$load"
kfd_emu 'errno resume_queues 5 100000'
kfd_emu 'errno disable 5 100000'
end_job INT "$JOB"
status=$?
kfd_emu clear_faults
[[ $status == 1 ]] || fail "a release that fails: exit $status"
said refused 'may still be held' || fail "a release that fails: $(<"$work/refused")"
! said refused '^released' || fail "a release that fails: $(<"$work/refused")"
until_true is_running "$load" || fail 'held by the dead'
expect 0 '' 'resume --all after that' "$GPREEMPT" resume --all
in_background benched "$GPREEMPT" bench "$load" -n 1000000
until_true eval "[[ \$(records) == 1 ]]" || fail 'bench has no record'
end_job INT "$JOB" || fail "bench and Ctrl-C: exit $?"
said benched 'success: hold 100.0 %' || fail "bench and Ctrl-C: $(<"$work/benched")"
until_true is_running "$load" || fail 'bench and Ctrl-C leave it held'

# A driver that does nothing, and a program without work: nothing shows it.
start_kfd_load --idle
kfd_emu 'ignore suspend_queues 1 100000'
try "$GPREEMPT" bench "$LOAD" -n 2
[[ $status == 0 && $out == *'confirmed by the driver only: 2 of 2 holds, 2 of 2 releases'* ]] ||
	fail "bench of an idle program: $status $out $err"
try "$GPREEMPT" suspend "$LOAD" --for 50ms
[[ $status == 0 && $out$err == *'no work was seen to stand still)'*'not every queue was seen to work since)'* ]] ||
	fail "suspend of an idle program: $status $out $err"
kfd_emu clear_faults
stop_kfd_load "$LOAD"

# The target ends meanwhile.
start_kfd_load
short=$LOAD
suspend_in_background ended "$short"
kill_job "$short"
wait "$JOB" || fail "the target ended: exit $?"
said ended "^$short (kfd-load) .* has ended" || fail "does not say that it ended: $(<"$work/ended")"
[[ $(records) == 0 ]] || fail 'the record of a process that ended stays'
ends_right "$load"
finish
