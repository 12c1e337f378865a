#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ps, stats, queues, suspend and resume with --json print what docs/output.schema.json describes:
# with and without a daemon, on the simulated GPU and on both emulated drivers.
set -u
python3 -c 'import jsonschema' 2>/dev/null || {
	echo 'python3-jsonschema is not here'
	exit 77
}
# shellcheck source=tests/cli/simgpu.bash
. "$SRC/tests/cli/simgpu.bash"
# shellcheck source=emu/nvidia/emu.bash
. "$SRC/emu/nvidia/emu.bash"
# shellcheck source=emu/kfd/kfd_emu.bash
. "$SRC/emu/kfd/kfd_emu.bash"
schema=$SRC/docs/output.schema.json
mkdir "$work/outputs"
outputs=0

# collect VERB FILE CLAIM: validate_all validates it. One Python process validates all outputs.
collect() {
	outputs=$((outputs + 1))
	cp "$2" "$work/outputs/$outputs.$1"
	echo "$3" >"$work/outputs/$outputs.claim"
}
validate_all() {
	PYTHONWARNINGS=ignore python3 "$SRC/tests/cli/output_schema.py" "$schema" "$work/outputs" ||
		fail 'an output is not as the schema says'
	((outputs >= 30)) || fail "only $outputs outputs were validated"
}

# valid CLAIM VERB ARGS...: the verb succeeds, and its output is collected.
valid() {
	local claim=$1
	shift
	try "$GPREEMPT" "$@" --json
	# shellcheck disable=SC2154 # try sets it
	[[ $status == 0 ]] || fail "$claim, $*: exit $status ($err)"
	collect "$1" "$work/out" "$claim, $*"
}

# shows JQ-EXPRESSION VERB ARGS...: true of its JSON.
shows() {
	"$GPREEMPT" "${@:2}" --json 2>/dev/null | jq -e "$1" >/dev/null
}

# every_verb CLAIM PID
every_verb() {
	local claim=$1 pid=$2
	valid "$claim" ps --for 200ms
	holds "any(.[]; .pid == $pid)" "$claim: ps lists the process"
	valid "$claim" ps
	valid "$claim" stats --for 200ms
	holds "any(.tasks[]; .pid == $pid) and (.devices | length > 0)" "$claim: stats lists the process"
	valid "$claim" queues "$pid"
	holds '.queues | length > 0' "$claim: queues"
	valid "$claim" suspend "$pid" --for 50ms
	jq -se 'map(.event) == ["held", "released"] and .[0].until == "time" and .[0].for_us == 50000' "$work/out" >/dev/null ||
		fail "$claim: suspend --for: $(<"$work/out")"
	valid "$claim" resume "$pid"
	valid "$claim" resume --all
}

# until_ctrl_c CLAIM PID: the first line says so, and resume names the owner.
until_ctrl_c() {
	in_background suspend "$GPREEMPT" suspend "$2" --json --no-daemon
	until_true said suspend '"held"' || fail "$1: suspend does not hold: $(<"$work/suspend")"
	head -n 1 "$work/suspend" | jq -e '.until == "signal"' >/dev/null || fail "$1: $(<"$work/suspend")"
	valid "$1" ps --no-daemon
	holds "any(.[]; .pid == $2 and .owner == $JOB)" "$1: ps names the owner of the hold"
	valid "$1" resume "$2" --no-daemon
	holds ".released == [{\"pid\": $2, \"name\": .released[0].name, \"owner\": $JOB}]" "$1: resume names the owner"
	wait "$JOB" || fail "$1: suspend ends with $?"
	collect suspend "$work/suspend" "$1, suspend until a signal"
	said suspend '"resumed"' || fail "$1: suspend does not notice the resume: $(<"$work/suspend")"
}

# ---- simulated GPU: without a daemon, then with one -------------------------------------------
start_simgpu --devices 2
start_simload train --kernel 5ms --ahead 4 --memory 7
train=$LOAD
every_verb 'sim without a daemon' "$train"
until_ctrl_c 'sim without a daemon' "$train"
try "$GPREEMPT" suspend "$train" --for 20ms
[[ $(head -n 1 "$work/out") == "held $train ("*'for 20.0 ms' ]] || fail "suspend --for says: $out"
in_background hold "$GPREEMPT" suspend "$train"
until_true said hold held || fail "suspend does not hold: $(<"$work/hold")"
[[ $(head -n 1 "$work/hold") == *'until Ctrl-C' ]] || fail "suspend says: $(<"$work/hold")"
end_job INT "$JOB" || fail "suspend ends with $?"
if [[ -x ${GPREEMPTD-} ]]; then
	in_background daemon "$GPREEMPTD" --gpu sim --policy priority
	daemon=$JOB
	until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
	until_true shows "any(.[]; .pid == $train and has(\"state\"))" ps || fail 'the daemon does not know the process'
	"$GPREEMPT" set "$train" --class be --share 20 --deadline 5ms --gang a >/dev/null || fail 'set'
	every_verb 'sim with a daemon' "$train"
	valid 'sim beside a daemon' ps --no-daemon
	valid 'sim beside a daemon' stats --for 100ms --no-daemon
	valid 'sim with a daemon' suspend "$train"
	holds '.until == "resume"' 'the daemon keeps the hold'
	until_true shows "any(.[]; .pid == $train and .state == \"suspended\")" ps || fail 'ps does not say suspended'
	valid 'a task that a user holds' ps
	valid 'sim with a daemon' resume "$train"
	holds ".released[0].owner == $daemon" 'the daemon released it'
	try "$GPREEMPT" suspend "$train"
	[[ $out == *', kept by the daemon until gpreempt resume' ]] || fail "suspend says: $out"
	end_job TERM "$daemon" || fail "the daemon ended with $?: $(<"$work/daemon")"
else
	echo 'gpreemptd is not built: tried without it only'
fi
unset GPREEMPT_GPU
export GPREEMPT_UNDO=$work/undo GPREEMPT_SOCKET=$work/no-daemon

# ---- the emulated drivers ---------------------------------------------------------------------
if [[ -x ${RM_EMU-} && -x ${RM_LOAD-} ]]; then
	start_emu --gpus 1
	trap 'end_jobs; stop_emu; rm -rf "$work"' EXIT
	start_load --contexts 1
	every_verb 'NVIDIA' "$LOAD"
	until_ctrl_c 'NVIDIA' "$LOAD"
	stop_load "$LOAD" || fail 'the load on NVIDIA'
	stop_emu
	trap 'end_jobs; rm -rf "$work"' EXIT
fi
if [[ -x ${KFD_EMU-} && -x ${KFD_LOAD-} ]]; then
	export GPREEMPT_NVIDIACTL=$work/no-nvidiactl
	start_kfd_emu --gpu mi250
	trap 'end_jobs; stop_kfd_emu; rm -rf "$work"' EXIT
	start_kfd_load --queues 2
	every_verb 'AMD' "$LOAD"
	until_ctrl_c 'AMD' "$LOAD"
fi
validate_all
finish
