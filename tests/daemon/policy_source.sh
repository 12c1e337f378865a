#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A policy that a user chose survives a restart, and says so. A changed configuration, the command line
# and `gpreempt policy --default` replace it.
set -u
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"

configure() { # POLICY [LINE]
	printf 'policy: %s\n%s\n' "$1" "${2-}" >"$work/config"
}
restart() { # OPTION...
	end_daemon
	start_daemon --config "$work/config" "$@"
}
reload() {
	local before
	before=$(grep -c '^info config.loaded' "$work/daemon")
	kill -HUP "$DAEMON"
	until_true eval "((\$(grep -c '^info config.loaded' '$work/daemon') > $before))" || fail "no reload: $(<"$work/daemon")"
}
policy_is() { # NAME SOURCE
	# shellcheck disable=SC2053 # SOURCE is a pattern
	[[ $("$GPREEMPT" policy) == *$'\nin force: '"$1"*$'\n  '$2* ]]
}
is() { # NAME SOURCE CLAIM
	until_true policy_is "$1" "$2" || fail "$3: not $1 ($2): $("$GPREEMPT" policy | sed -n '/^in force/,$p')"
}
me=$(id -un)
chosen="chosen by $me at 20??-??-?? ??:??:??; the configuration has"

start_simgpu --devices 1
configure priority
start_daemon --config "$work/config"
is priority 'from the configuration' 'at first'
said daemon '^info device.started .* policy=priority source=configuration' || fail "the log does not name the source: $(<"$work/daemon")"

expect 0 '' 'policy rr' "$GPREEMPT" policy rr
is rr "$chosen priority ('gpreempt policy --default' returns to it)" 'chosen'
try "$GPREEMPT" ps
[[ $out == *'policy rr (chosen by a user)'* ]] || fail "ps does not say that a user chose the policy: $out"

# An unchanged policy in the configuration does not replace the choice.
configure priority 'memory_limit: 1GiB'
reload
is rr "$chosen priority" 'after a reload without another policy'
restart
is rr "$chosen priority" 'after a restart with the same configuration'
said daemon "^info policy.choice-kept policy=rr by=.* at=20.* text=.*gpreempt policy --default" ||
	fail "the log does not say that the choice is kept: $(<"$work/daemon")"

# A changed one does, at a reload and at a restart; the choice does not come back.
configure fair
reload
is fair 'from the configuration' 'a reload with another policy'
said daemon '^warn policy.choice-dropped policy=rr by=' || fail "the log does not say that the choice was dropped: $(<"$work/daemon")"
restart
is fair 'from the configuration' 'a restart after that'
"$GPREEMPT" policy rr >/dev/null || fail 'policy rr'
configure mlfq
restart
is mlfq 'from the configuration' 'a restart with another policy'
said daemon '^warn policy.choice-dropped policy=rr by=' || fail "nothing in the log: $(<"$work/daemon")"

# The command line of a start.
"$GPREEMPT" policy rr >/dev/null || fail 'policy rr'
restart --policy fair
is fair 'from the command line of gpreemptd' 'a start with --policy'
said daemon '^warn policy.choice-dropped policy=rr .*command line' || fail "nothing in the log: $(<"$work/daemon")"
"$GPREEMPT" policy rr >/dev/null || fail 'policy rr'
is rr 'chosen by' 'a choice after a start with --policy'
configure priority
reload
is rr 'chosen by' 'a reload cannot override the command line'
said daemon '^warn policy.overridden policy=fair' || fail "nothing in the log: $(<"$work/daemon")"
expect 0 '' 'policy --default' "$GPREEMPT" policy --default
is fair 'from the command line of gpreemptd' 'the default is that of the command line'

# Back to the configuration.
restart
is priority 'from the configuration' 'a start without --policy'
"$GPREEMPT" policy rr >/dev/null || fail 'policy rr'
expect 0 '' 'policy --default' "$GPREEMPT" policy --default
[[ $out == 'in force: priority: '*$'\n  from the configuration' ]] || fail "policy --default said '$out'"
restart
is priority 'from the configuration' 'a restart after policy --default'
expect 2 "*--default and the policy 'rr' contradict*" 'policy --default with a policy' "$GPREEMPT" policy --default rr

# A choice for one device stays at a reload, and ends with the daemon.
"$GPREEMPT" policy --device 0 rr >/dev/null || fail 'policy --device'
reload
is rr "$chosen priority" 'a choice for one device after a reload'
restart
is priority 'from the configuration' 'a choice for one device after a restart'
end_daemon
finish
