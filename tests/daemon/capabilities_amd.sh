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
ends_right "$LOAD"
finish
