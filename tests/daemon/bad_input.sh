# SPDX-License-Identifier: Apache-2.0
#
# Bad input for the real daemon: an error or a clean close, and nobody else notices.
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"

start_simgpu
start_daemon
start_simload load --every 10ms
try python3 "$SRC/tests/daemon/bad_input.py" "$SOCKET"
echo "$out"
exits 0 '' 'bad input'
end_daemon
finish
