# SPDX-License-Identifier: Apache-2.0
#
# What users control never raises them above their limit, whatever they call themselves: a table of
# real processes of real users. What only root can make does raise.
# shellcheck source=tests/daemon/rights/rights.bash
. "$SRC/tests/daemon/rights/rights.bash"

alice=59001 bob=59002 carol=59003 staff=59200
program=$BUILD/tests/daemon/rights/rights-program

# Where only root can write, all the way up; and where anybody can.
roots=$(mktemp -d /var/lib/gpreempt-test.XXXXXX)
trap 'end_jobs; rm -rf "$work" "$roots"' EXIT
chmod 755 "$roots"
cp "$program" "$roots/server"
cp "$program" "$roots/other"
cp "$program" "$roots/shared"
chmod 775 "$roots/shared" # somebody else may write it
cp "$program" "$roots/setuid"
chown $carol "$roots/setuid"
chmod 4755 "$roots/setuid"
mkdir -m 777 "$work/copied" "$work/bobs"
cp "$program" "$work/copied/server"
cp "$program" "$work/copied/gone"
chown -R $bob "$work/copied"
cp "$program" "$work/bobs/server" # root's file in bob's folder
chown $bob "$work/bobs"

cat >"$work/config" <<END
rules:
  - match: {user: $carol}
    class: lc
    priority: 7
  - match: {group: $staff}
    class: lc
    priority: 6
  - match: {exe: "$roots/server"}
    class: lc
    priority: 9
  - match: {exe: "$roots/shared"}
    class: lc
    priority: 9
  - match: {exe: "$work/*/*"}
    class: lc
    priority: 9
  - match: {exe: "/memfd:*"}
    class: lc
    priority: 9
  - match: {env: RAISE=yes}
    class: lc
    priority: 9
  - match: {cmdline: "*raise-me*"}
    class: lc
    priority: 9
  - match: {comm: raise-me}
    class: lc
    priority: 9
  - match: {env: LOWER}
    class: be
  - match: {cmdline: "*lower-me*"}
    class: be
  - match: {comm: lower-me}
    class: be
limits:
  users:
    $alice: {class: lc, priority: 4}
END
start_simgpu
start_daemon --config "$work/config"

became() { # PID CLASS PRIORITY RULE
	"$GPREEMPT" ps --json | jq -e --argjson pid "$1" --arg class "$2" --argjson priority "$3" \
		--arg by "$4" '.[] | select(.pid == $pid) |
			.class == $class and .priority == $priority and .set_by == $by' >/dev/null
}

# A class is told to the device after it is said whose word it is. What is asked of the device next
# comes after it, and makes it show how things stand.
settle() {
	"$GPREEMPT" policy priority >/dev/null || fail 'the policy cannot be set'
}

# row CLAIM UID CLASS PRIORITY BY COMMAND...
row() {
	local claim=$1 uid=$2 class=$3 priority=$4 by=$5
	shift 5
	as "$uid" "$@"
	until_true said program . || fail "$claim: it does not start"
	if said program '^ready$'; then
		until_true became "$JOB" "$class" "$priority" "$by" && settle
		became "$JOB" "$class" "$priority" "$by" ||
			fail "$claim: $("$GPREEMPT" ps --json | jq -c ".[] | select(.pid == $JOB)")"
		echo "$claim: $class $priority by $by"
	else
		fail "$claim: $(<"$work/program")"
	fi
	kill -9 "$JOB" 2>/dev/null
	wait "$JOB" 2>/dev/null
}

# What only root can make.
row "anybody's server of root's" $bob lc 9 rule "$roots/server"
row 'who is in the group' $bob+$staff lc 6 rule "$roots/other"
row 'carol' $carol lc 7 rule "$roots/other"
row "carol's set-uid program is not carol" $bob unmanaged 0 default "$roots/setuid" \
	--socket "$GPREEMPT_RUN/simgpu.sock"
row 'nobody in particular' $bob unmanaged 0 default "$roots/other"

# What users control raises to their limit; bob has none but what everybody has.
for how in "$roots/other raise-me" "$roots/other --comm raise-me" \
	"env RAISE=yes $roots/other" "$work/copied/server" "$roots/other --memfd" "$roots/shared" \
	"$work/bobs/server"; do
	read -ra words <<<"$how"
	row "bob, $how" $bob unmanaged 0 rule "${words[@]}"
	row "alice, $how" $alice lc 4 rule "${words[@]}"
	row "root, $how" 0 lc 9 rule "${words[@]}"
done
row 'bob, and the file is gone' $bob unmanaged 0 rule "$work/copied/gone" --delete
row 'bob, under a wrong name' $bob unmanaged 0 rule bash -c "exec -a raise-me $roots/other"

# It lowers everybody.
row 'bob, told to go last' $bob be 0 rule "$roots/other" lower-me
row 'alice, by a variable' $alice be 0 rule env LOWER= "$roots/other"
row 'root, by its name' 0 be 0 rule "$roots/other" --comm lower-me

# What a user mounts over root's path is not root's file, be it root's.
if setpriv --reuid $bob --regid $bob --clear-groups unshare --user --map-root-user --mount true; then
	row "bob's mount of his own" $bob unmanaged 0 rule \
		"$roots/other" --bind "$work/copied/server" "$roots/server"
	row "bob's mount of root's" $bob unmanaged 0 rule \
		"$roots/other" --bind "$roots/other" "$roots/server"
else
	echo 'users may not make namespaces here: mounts over a path were not tried'
fi
end_daemon
finish
