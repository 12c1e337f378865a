# SPDX-License-Identifier: Apache-2.0
#
# A release ends the hold of one process. The hold that an administrator placed on another member of
# its gang, or on the process itself, does not end by a release of a user.
# shellcheck source=tests/daemon/rights/rights.bash
. "$SRC/tests/daemon/rights/rights.bash"

alice=59001
program=$BUILD/tests/daemon/rights/rights-program
as_alice() {
	try setpriv --reuid $alice --regid $alice --clear-groups "$GPREEMPT" "$@"
}
is() { # PID JQ
	"$GPREEMPT" ps --json | jq -e "any(.[]; .pid == $1 and ($2))" >/dev/null
}
are() { # JQ CLAIM
	for pid in "$one" "$two"; do
		until_true is "$pid" "$1" || fail "$2: $("$GPREEMPT" ps --json | jq -c .)"
	done
}
held='.held_by == ["user"] and .state == "suspended"'
free='.held_by == [] and .state != "suspended"'

start_simgpu
start_daemon --policy priority
as $alice "$program"
one=$JOB
as $alice "$program"
two=$JOB
for pid in "$one" "$two"; do
	until_true is "$pid" true || fail "the daemon does not know $pid"
	as_alice set "$pid" --class be --gang both
	exits 0 '' 'alice makes a gang'
done

expect 0 '' "root's hold" "$GPREEMPT" suspend "$two"
are "$held" "root's hold of one covers the gang"
as_alice resume "$one"
exits 1 "gpreempt: process $one stays held, because process $two (*) of its gang is held; release that one, too" \
	"alice releases the other"
[[ $out == '' ]] || fail "alice releases the other: $out"
as_alice resume "$two"
exits 3 'gpreempt: an administrator holds the process*' "alice releases root's"
as_alice suspend "$one" --for 20ms
[[ $status == 1 && $out != *released* ]] || fail "alice's short hold of the other: exit $status, '$out'"
as_alice resume --all
exits 3 'gpreempt: * held by other users stay held; root can release them' 'alice releases all'
[[ $out != *released* ]] || fail "alice releases all: $out"
are "$held" "alice ended root's hold"

# Root's hold on the process itself, beside alice's own.
as_alice suspend "$one"
exits 0 '' "alice's hold"
expect 0 '' "root's hold of the same" "$GPREEMPT" suspend "$one"
as_alice resume "$one"
exits 3 'gpreempt: an administrator holds the process*' "alice releases what root and she hold"
are "$held" "alice ended root's hold of the same"

# The release of an administrator, too, is of one process.
expect 1 'gpreempt: *stays held*' 'root releases one' "$GPREEMPT" resume "$one"
expect 0 '' 'root releases the other' "$GPREEMPT" resume "$two"
[[ $out == "released $two "* ]] || fail "root releases the other: $out"
are "$free" 'both are released'

# All at once, by the daemon and by the undo records.
for how in --all "$one --no-daemon"; do
	expect 0 '' "root's hold" "$GPREEMPT" suspend "$two"
	are "$held" "root's hold"
	# shellcheck disable=SC2086
	expect 0 '' "resume $how" "$GPREEMPT" resume $how
	[[ $out == *"released $one "* ]] || fail "resume $how: $out"
	are "$free" "resume $how"
done
end_daemon
finish
