#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rules find other users' programs by what only root can read of them, and govern them.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
configure <<'END'
policy: priority
rules:
  - match: {cgroup: "/system.slice/inference-*.service"}
    class: lc
    priority: 8
  - match: {env: WHO=batch-*}
    class: be
    weight: 30
  - match: {user: bob, exe: /usr/local/bin/gpreempt}
    class: lc
END
systemctl restart gpreemptd
until_true has_device || fail 'no device after a restart'

# is PID CLASS RULE: by that rule.
is() {
	[[ "$(task "$1" class) $(task "$1" set_by) $(task "$1" rule)" == "$2 rule $3" ]]
}

# governed PID CLASS RULE
governed() {
	until_true is "$@" || fail "not '$2 by rule $3' but $(gpreempt ps --json)"
}

start_load batch-1 carol
first=$LOAD
governed "$first" be 2
[[ $(task "$first" weight) == 30 ]] || fail "its weight is $(task "$first" weight)"
start_load batch-2 carol
second=$LOAD
governed "$second" be 2
start_load inference-a carol --every 50ms
service=$LOAD
governed "$service" lc 1
# A program of root's is a fact, as seen from the daemon's own mount namespace.
start_load bobs bob --every 50ms
governed "$LOAD" lc 3
systemctl stop bobs
start_load stranger carol --every 1s
[[ $(task "$LOAD" class) == unmanaged ]] || fail "without a rule it is $(task "$LOAD" class)"

# Of two best-effort programs beside a service, one is held at a time.
preempted() {
	answers && grep -qE '"holds":([4-9]|[0-9]{2,}),"releases":([4-9]|[0-9]{2,}),' "$work/stats"
}
until_true preempted || fail "the policy does nothing: $(<"$work/stats")"
systemctl stop batch-1 batch-2 inference-a stranger
until_true nothing_left || fail "$(records) records of programs that are gone"
finish
