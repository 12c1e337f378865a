#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The journal has events with fields that can be asked for, as docs/operations.md has it.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
start_load job carol
hold "$LOAD"
try gpreempt resume "$LOAD"
exits 0 '' resume

has_fields GPREEMPT_EVENT=process.hold-requested "\"GPREEMPT_PID\":\"$LOAD\"" '"GPREEMPT_BY":"0"' '"PRIORITY":"6"' \
	'"SYSLOG_IDENTIFIER":"gpreemptd"' '"_SYSTEMD_UNIT":"gpreemptd.service"' '"MESSAGE":"process.hold-requested '
has_fields GPREEMPT_EVENT=device.none '"PRIORITY":"4"' '"GPREEMPT_TEXT":"'
[[ $(journalctl --output=cat --no-pager --unit gpreemptd GPREEMPT_PID="$LOAD" | wc -l) -ge 2 ]] ||
	fail 'a process cannot be asked for'
systemctl stop job
finish
