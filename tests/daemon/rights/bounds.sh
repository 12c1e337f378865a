# SPDX-License-Identifier: Apache-2.0
#
# An administrator's rule is a bound for what users say, unless a limit allows more: whether it was
# said before the rule was known or after, by a parent, under older rules and limits, or to an
# earlier daemon.
# shellcheck source=tests/daemon/rights/rights.bash
. "$SRC/tests/daemon/rights/rights.bash"

alice=59001 staff=59200
program=$BUILD/tests/daemon/rights/rights-program
rule="{match: {user: $alice}, class: be, ceiling: 50}"

configure() { # RULE LIMITS
	printf 'rules: [%s]\nlimits: {%s}\n' "$1" "$2" >"$work/config"
}
reload() { # RULE LIMITS
	: >"$work/daemon"
	configure "$@"
	kill -HUP "$DAEMON"
	until_true said daemon config.loaded || fail 'the configuration is not taken'
}
restart() {
	end_daemon
	start_daemon --config "$work/config"
}

is() { # PID JQ
	"$GPREEMPT" ps --json | jq -e "any(.[]; .pid == $1 and ($2))" >/dev/null
}
becomes() { # PID JQ CLAIM
	until_true is "$1" "$2" || fail "$3: not so: $2 in $("$GPREEMPT" ps --json | jq -c .)"
}
alice_sets() { # PID OPTION...
	try setpriv --reuid $alice --regid $alice --clear-groups "$GPREEMPT" set "$@"
}
# What is asked of the device next comes after what was decided before.
settle() {
	"$GPREEMPT" policy priority >/dev/null || fail 'the policy cannot be set'
}

configure "$rule" ''
start_simgpu
start_daemon --config "$work/config"

# Said when the rule is known.
as $alice "$program"
ruled=$JOB
becomes "$ruled" '.set_by == "rule" and .class == "be" and .ceiling_permille == 500' 'the rule'
for above in '--class unmanaged' '--class lc' '--ceiling none' '--ceiling 51' '--priority 1' \
	'--weight 101' '--share 1' '--deadline 1s'; do
	read -ra words <<<"$above"
	alice_sets "$ruled" "${words[@]}"
	exits 3 '*administrator*' "$above, above the rule"
done
alice_sets "$ruled" --ceiling 20 --weight 10
exits 0 '' 'below the rule'
becomes "$ruled" '.set_by == "user" and .ceiling_permille == 200' 'below the rule'
alice_sets "$ruled" --ceiling 50 --weight 100
exits 0 '' 'back to what the rule gives'
alice_sets "$ruled" --ceiling none
exits 3 '*ceiling*' 'but not above it'

# Said before, and by a parent.
as $alice "$GPREEMPT" run --class unmanaged -- "$program"
becomes "$JOB" '.set_by == "user" and .class == "be" and .ceiling_permille == 500' \
	'what was said before the rule was known'
as $alice "$GPREEMPT" run --class unmanaged -- bash -c "\"$program\" & echo child \$!; wait"
until_true said program '^child' || fail 'no child'
child=$(sed -n 's/^child //p' "$work/program")
jobs_started+=("$child")
becomes "$child" '.set_by == "user" and .class == "be" and .ceiling_permille == 500' 'what a parent said'

# A limit allows more; then it does not any more. An administrator's word stays.
reload "$rule" "users: {$alice: {class: lc, priority: 9}}"
alice_sets "$ruled" --class lc --priority 9
exits 0 '' 'within the limit'
as $alice "$GPREEMPT" run --class lc --priority 8 -- sleep 1000
sleeping=$JOB
sleeps() { [[ $(<"/proc/$sleeping/comm") == sleep ]]; }
until_true sleeps || fail 'run runs nothing'
as $alice "$program"
becomes "$JOB" '.set_by == "rule"' 'the rule'
"$GPREEMPT" set "$JOB" --class lc --priority 9 >/dev/null || fail 'an administrator may'
admins=$JOB
restart
becomes "$ruled" '.class == "lc" and .priority == 9 and .set_by == "user"' 'over a restart it stays'
reload "$rule" ''
becomes "$ruled" '.class == "be" and .priority == 0 and .ceiling_permille == 500' \
	'a narrower limit, after a reload'
in_roster() { # PATTERN
	tac "$GPREEMPT_RUN/assignments" | grep -m1 "^set $sleeping " | grep -q "$1"
}
until_true in_roster "^set $sleeping [0-9]* 1 0 " ||
	fail "one without queues: $(grep "^set $sleeping " "$GPREEMPT_RUN/assignments")"
reload '' ''
settle
becomes "$ruled" '.class == "be" and .priority == 0 and .set_by == "user"' 'what was said low stays low'
becomes "$admins" '.class == "lc" and .priority == 9' "an administrator's word stays"

# The same by a restart, and without a rule.
reload '' "users: {$alice: {class: lc, priority: 9}}"
alice_sets "$ruled" --class lc --priority 9
exits 0 '' 'within the limit'
configure '' ''
restart
becomes "$ruled" '.class == "unmanaged" and .priority == 0 and .set_by == "user"' \
	'a narrower limit, after a restart'

# By whose groups: those of who asks and, when that was long ago, those in the user database.
login=$(getent passwd 1 | cut -d: -f4)
reload "{match: {user: 1}, class: be}" "groups: {$login: {class: lc}, $staff: {priority: 3}}"
as 1 "$program"
becomes "$JOB" '.set_by == "rule"' 'the rule'
try setpriv --reuid 1 --regid 1 --groups "$login,$staff" "$GPREEMPT" set "$JOB" \
	--class lc --priority 3
exits 0 '' 'by a group of who asks'
reload "{match: {user: 1}, class: be}" "groups: {$login: {class: lc}}"
becomes "$JOB" '.class == "lc" and .priority == 0' 'after a reload, by the user database'
end_daemon
finish
