# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The daemon and the keeper with what their units give them, and nothing else, beside programs of
# another user. After nvidia.bash or amd.bash, with an emulator and KIND, the back end's name.
stranger=59001 # nobody in particular
keeper=$BUILD/gpreempt-keeper
[[ -x ${GPREEMPTD-} && -x $keeper ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck disable=SC2154 # check.bash makes it
mkdir "$work/run"
chmod 755 "$work/run"
export GPREEMPT_RUN=$work/run GPREEMPT_SOCKET=$work/run/gpreemptd.sock
unset GPREEMPT_UNDO
echo 'policy: none' >"$work/config"

# What comes next would wait for what will never be.
give_up() {
	fail "$@"
	finish
}

# strangers LOAD: sets STRANGERS to a program that starts a copy of LOAD as that user. Not by a change
# of user in the program: what belongs to it in /proc would be root's then.
strangers() {
	chmod 755 "$work"
	STRANGERS=$work/stranger
	cp "$1" "$work/load"
	printf '#!/bin/sh\nexec setpriv --reuid %s --regid %s --clear-groups %s "$@"\n' \
		$stranger $stranger "$work/load" >"$STRANGERS"
	chmod 755 "$STRANGERS" "$work/load"
}

# as_unit UNIT: sets AS, the words in front of a command that is to have that unit's capabilities.
as_unit() {
	local name names set=-all
	read -ra names < <(sed -n 's/^CapabilityBoundingSet=//p' "$SRC/systemd/$1.service.in")
	for name in "${names[@]}"; do
		name=${name,,}
		set+=,+${name#cap_}
	done
	[[ $set != -all ]] || fail "$1.service has no capabilities"
	AS=(setpriv --bounding-set "$set" --inh-caps=-all --no-new-privs)
}

start_keeper() {
	as_unit gpreempt-keeper
	in_background keeper "${AS[@]}" "$keeper"
	KEEPER=$JOB
	until_true test -e "$GPREEMPT_RUN/undo" || fail "no keeper: $(<"$work/keeper")"
}

start_daemon() {
	as_unit gpreemptd
	in_background daemon "${AS[@]}" "$GPREEMPTD" --gpu "$KIND" --config "$work/config"
	DAEMON=$JOB
	until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
}

kill_daemon() {
	kill_job "$DAEMON"
}

# knows PID: the daemon sees its queues, and whether they have work.
knows() {
	"$GPREEMPT" ps --json | jq -e "any(.[]; .pid == $1 and has(\"state\"))" >/dev/null 2>&1
}

nothing_left() {
	[[ $(records) == 0 ]]
}

# hold PID: through the daemon, until it is.
hold() {
	until_true knows "$1" || give_up "the daemon does not know $1: $("$GPREEMPT" ps --json)"
	expect 0 '' "suspend of another user's program" "$GPREEMPT" suspend "$1"
	is_held "$1" || fail "$1 is not held"
}

# goes_on PID WHO: it runs again.
goes_on() {
	until_true is_running "$1" || give_up "$2 does not put it back: $(<"$work/keeper")"
	makes_progress "$1" || fail "it does not go on after $2"
}

# is_put_back PID WHO: and nothing is left to undo.
is_put_back() {
	goes_on "$1" "$2"
	until_true nothing_left || give_up "$2 leaves $(records) records: $(<"$work/keeper")"
}

# within_the_units PID: found, held and put back, by whichever of the two is left.
within_the_units() {
	start_keeper
	start_daemon
	hold "$1"
	expect 0 '' "resume of another user's program" "$GPREEMPT" resume "$1"
	goes_on "$1" 'the daemon'
	hold "$1"
	kill_daemon
	is_put_back "$1" 'the keeper'

	# Both gone: what the daemon's unit runs then has the daemon's capabilities.
	start_daemon
	hold "$1"
	kill -KILL "$KEEPER"
	kill_daemon
	expect 0 '*' 'gpreempt-keeper --once' "${AS[@]}" "$keeper" --once
	is_put_back "$1" 'gpreempt-keeper --once'
}
