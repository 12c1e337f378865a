# SPDX-License-Identifier: Apache-2.0
#
# Pids that are used again, and pids of containers, against the real daemon.
# shellcheck source=tests/daemon/rights/rights.bash
. "$SRC/tests/daemon/rights/rights.bash"

cat >"$work/config" <<END
rules:
  - match: {env: NOBODY_HAS_THIS=1}
    class: be
  - match: {comm: chosen}
    class: be
END
start_simgpu
start_daemon --config "$work/config"
PADDING=$(printf '%20000s' '') try "$BUILD/tests/daemon/rights/rights-reuse" "$DAEMON" "$GPU" "$work/daemon"
echo "$out"
[[ $status == 77 ]] && exit 77
exits 0 '' 'whom a number means'
end_daemon
finish
