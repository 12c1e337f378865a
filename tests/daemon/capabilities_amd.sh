#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the units may do is enough for other users' programs on the emulated AMD driver.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi300x
chmod 755 "$KFD_TMP"
KIND=amd
# shellcheck source=tests/daemon/capabilities.bash
. "$SRC/tests/daemon/capabilities.bash"

strangers "$KFD_LOAD"
KFD_LOAD=$STRANGERS
start_kfd_load --queues 2 || fail "no load: $(<"$KFD_TMP/$LOAD")"
within_the_units "$LOAD"

# They are enough to see its evictions. A release meanwhile is no failure and keeps the session.
start_daemon
hold "$LOAD"
kfd_emu evict "$LOAD"
until_true said daemon "^warn task.evicted pid=$LOAD .*cause=memory" || fail "not told: $(<"$work/daemon")"
expect 0 '' 'resume of an evicted program' "$GPREEMPT" resume "$LOAD"
sleep 0.6 # longer than the 250 ms after which a release without an effect is doubted
! said daemon 'session.ended-to-release\|action.failed' || fail "a failure: $(<"$work/daemon")"
kfd_emu restore "$LOAD"
until_true said daemon "^warn task.restored pid=$LOAD " || fail "not told: $(<"$work/daemon")"
goes_on "$LOAD" 'the driver'
ends_right "$LOAD"
for state in begin end; do
	kfd_emu reset 0 "$state"
	until_true said daemon "^error device.reset .*state=${state/in/un}" || fail "reset: $(<"$work/daemon")"
done
kill_daemon
finish
