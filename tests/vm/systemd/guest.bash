# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# In the guest: what the parts of the test share. check.bash is that of tests/cli.
# shellcheck source=tests/cli/check.bash
. /tests/check.bash
# until_true COMMAND...: waits up to 30 s for it. To sleep costs nothing here (systemd.sh).
until_true() {
	local end=$((SECONDS + 30))
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.5
	done
}

export GPREEMPT_SIMGPU=/run/gpreempt/simgpu.sock # otherwise each user has his own
config=/etc/gpreempt/gpreempt.yaml

# property UNIT NAME: what systemd says of it.
property() {
	systemctl show --value --property="$2" "$1"
}

pid_of() { # UNIT
	property "$1" MainPID
}

is_active() { # UNIT
	[[ $(property "$1" ActiveState) == active ]]
}

is_inactive() { # UNIT
	[[ $(property "$1" ActiveState) == inactive ]]
}

as() { # USER COMMAND...
	setpriv --reuid "$1" --regid "$1" --init-groups "${@:2}"
}

# configure: standard input becomes the configuration, of the simulated GPU.
configure() {
	{
		echo 'gpu: sim'
		cat
	} >"$config"
}

# start_load UNIT USER ARGS...: a user's program with work for the GPU, in a unit of its own; sets
# LOAD to its pid.
start_load() {
	systemd-run --quiet --collect --unit="$1" --uid="$2" --setenv="WHO=$1" --setenv=GPREEMPT_SIMGPU \
		gpreempt simload --name "$1" --kernel 10ms "${@:3}" || fail "$1 does not start"
	LOAD=$(pid_of "$1")
	until_true is_seen "$LOAD" || fail "$1 ($LOAD) is not seen: $(gpreempt ps --json 2>&1)"
}

# member PID NAME: of that process's task in the JSON on standard input. Not by jq, which takes a second
# to start here.
member() {
	tr -d '\n' | sed 's/} *,{/}\n{/g' | sed -n "/\"pid\":$1,/s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p"
}

# task PID NAME: what the daemon says of it.
task() {
	gpreempt ps --json 2>/dev/null | member "$@"
}

is_seen() { # PID: by the daemon
	[[ $(task "$1" class) ]]
}

# state_of PID: as the simulated GPU has it, with or without a daemon.
state_of() {
	GPREEMPT_GPU=sim gpreempt ps --no-daemon --for 1ms --json | member "$1" state
}

is_held() { # PID
	[[ $(state_of "$1") == @(held|suspended) ]]
}

is_loose() { # PID
	[[ $(state_of "$1") == @(running|idle|waiting|active) ]]
}

records() {
	gpreempt doctor --json | sed 's/.*"records":\([0-9]*\).*/\1/'
}

nothing_left() {
	[[ $(records) == 0 ]]
}

# runs PID WHY
runs() {
	until_true is_loose "$1" || fail "$2: $1 is $(state_of "$1")"
}

# is_put_back PID WHY: it runs, and nothing is left to undo.
is_put_back() {
	runs "$@"
	until_true nothing_left || fail "$2: $(records) records are left"
}

# stands PID WHY: it is held.
stands() {
	is_held "$1" || fail "$2: $(GPREEMPT_GPU=sim gpreempt ps --no-daemon --for 1ms --json)"
}

hold() { # PID
	try gpreempt suspend "$1"
	exits 0 '' "suspend $1"
	stands "$1" "suspend $1"
}

# has_fields MATCH FIELD...: the last record of gpreemptd that fits MATCH has these, as JSON writes them.
has_fields() {
	local record field
	journalctl --sync
	record=$(journalctl --output=json --no-pager --lines=1 --unit gpreemptd "$1")
	for field in "${@:2}"; do
		# shellcheck disable=SC2053 # a pattern
		[[ $record == *$field* ]] || fail "no $field in '$record'"
	done
}

# said UNIT TEXT: whether that stands in its part of the journal.
said() {
	journalctl --sync
	journalctl --output=cat --no-pager --unit "$1" | grep -q "$2"
}

# answers: gpreemptd, started by its unit or by its socket.
answers() {
	gpreempt stats --for 0s --json >"$work/stats" 2>/dev/null
}

has_device() {
	answers && grep -q '"devices":\[{"device":0,' "$work/stats"
}
