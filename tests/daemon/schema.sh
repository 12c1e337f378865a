#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the daemon says is what docs/protocol.schema.json says, for every method and every event.
set -u
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"
python3 -c 'import jsonschema' 2>/dev/null || {
	echo 'python3-jsonschema is not here'
	exit 77
}
start_simgpu --devices 1
start_daemon --policy priority
start_simload train --kernel 2ms
until_true eval "[[ \$($GPREEMPT ps --json | grep -c $LOAD) -gt 0 ]]" || fail 'the load is not seen'
python3 "$SRC/tests/daemon/schema.py" "$SOCKET" "$SRC/docs/protocol.schema.json" "$LOAD" ||
	fail "the schema: $(<"$work/daemon")"
end_daemon
finish
