#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An MPS server runs the work of many programs: `set` refuses it without --force, and a rule or an
# earlier `set` that applies to it is logged as a warning.
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
echo 'policy: none' >"$work/config"
in_background daemon "$GPREEMPTD" --gpu nvidia --config "$work/config"
DAEMON=$JOB
until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"

start_load --mps
server=$LOAD
class_is() { # class_is CLASS: of the server, as the daemon has it
	[[ $("$GPREEMPT" ps --json | jq -r ".[] | select(.pid == $server).class") == "$1" ]]
}
warned() { # warned CLASS: of the server
	said daemon "^warn process.shared pid=$server name=\"nvidia-cuda-mps[^\"]*\" class=$1 "
}
until_true class_is unmanaged || fail "ps: $("$GPREEMPT" ps --json)"
for attribute in '--class be' '--class lc' '--class be --weight 7'; do
	# shellcheck disable=SC2086
	expect 3 "gpreempt: process $server (nvidia-cuda-mps*) works for many programs*--force*" \
		"set $attribute" "$GPREEMPT" set "$server" $attribute
done
class_is unmanaged || fail 'a refused set has changed the server'
expect 0 '' 'unmanaged needs no --force' "$GPREEMPT" set "$server" --class unmanaged
said daemon process.shared && fail "a warning without a class: $(<"$work/daemon")"
expect 0 '' 'set --force' "$GPREEMPT" set "$server" --class be --force
class_is be || fail 'set --force has no effect'
warned be || fail "set --force is not logged: $(<"$work/daemon")"
expect 0 '' 'back to unmanaged' "$GPREEMPT" set "$server" --class unmanaged
stop_load "$server"

# A rule applies, with a warning. Other programs that it matches get none.
printf 'policy: none\nrules:\n  - {match: {anyone: true}, class: lc}\n' >"$work/config"
kill -HUP "$DAEMON"
until_true said daemon 'config.*loaded' || fail "no reload: $(<"$work/daemon")"
start_load
plain=$LOAD
start_load --mps
server=$LOAD
until_true class_is lc || fail "the rule does not apply: $("$GPREEMPT" ps --json)"
warned lc || fail "the rule is not logged: $(<"$work/daemon")"
said daemon "process.shared pid=$plain " && fail 'a warning about an ordinary program'
expect 3 "gpreempt: process $server *--force*" 'an attribute beside a rule' "$GPREEMPT" set "$server" --priority 3
stop_load "$server"
ends_right "$plain"

# A class that was set before the first queue applies, too.
in_background early "$GPREEMPT" run --class be -- "$RM_LOAD" --mps
server=$JOB
until_true class_is be || fail "run: $("$GPREEMPT" ps --json)"
warned be || fail "run is not logged: $(<"$work/daemon")"
end_job TERM "$server"
end_job TERM "$DAEMON" || fail "the daemon ended with $?: $(<"$work/daemon")"
finish
