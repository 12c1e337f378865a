# SPDX-License-Identifier: Apache-2.0
#
# The table of rights, row by row, against the real daemon and by real users: one of root's, and one
# that a user runs.
# shellcheck source=tests/daemon/rights/rights.bash
. "$SRC/tests/daemon/rights/rights.bash"

cat >"$work/config" <<END
sockets: {group: 59100}
rules:
  - match: {anyone: true}
    class: be
    ceiling: 50
limits:
  default: {class: lc, priority: 4, max_tasks: 4}
END
start_simgpu
start_daemon --config "$work/config"
try "$BUILD/tests/daemon/rights/rights-table"
echo "$out"
exits 0 '' 'the table'
end_daemon
kill "$GPU"

# The same rights for who runs the daemon, if that is not root.
owner=59005
chown "$owner" "$GPREEMPT_RUN" "$work/config"
rm -rf "${GPREEMPT_RUN:?}"/*
sed -i /sockets/d "$work/config" # a group that it is not in
as_owner=(setpriv --reuid "$owner" --regid "$owner" --clear-groups)
in_background simgpu "${as_owner[@]}" "$SIMGPU"
until_true said simgpu '^ready$' || fail "no simulated GPU: $(<"$work/simgpu")"
in_background daemon "${as_owner[@]}" "$GPREEMPTD" --gpu sim --config "$work/config"
DAEMON=$JOB
until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
try env ACTORS_WITHOUT_CAPABILITIES=1 "$BUILD/tests/daemon/rights/rights-table" "$owner"
echo "$out"
exits 0 '' 'the table of a user who runs the daemon'
end_daemon
finish
