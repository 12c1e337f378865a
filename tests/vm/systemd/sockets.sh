#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With the socket units the first client starts the daemon. After order.sh, which stops it.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
! is_active gpreemptd || fail 'it runs already'
systemctl start gpreemptd.socket gpreemptd-hint.socket || fail 'no sockets'
! is_active gpreemptd || fail 'it runs before anybody asks'
for socket in gpreemptd hint; do
	[[ $(stat -c %a /run/gpreempt/$socket.sock) == 666 ]] || fail "$(stat /run/gpreempt/$socket.sock)"
done
try as bob gpreempt ps --json
exits 0 '' 'the first client'
is_active gpreemptd || fail "after a client it is $(property gpreemptd ActiveState)"
is_active gpreempt-keeper || fail 'no keeper'
until_true has_device || fail 'no device'

# Stopped, it goes; the sockets stay, also over a death.
systemctl stop gpreemptd 2>/dev/null
! is_active gpreemptd || fail 'it does not stop'
try as alice gpreempt policy none
exits 0 '*' 'a client after a stop'
pid=$(pid_of gpreemptd)
kill -9 "$pid"
try as bob gpreempt run --class be -- true
exits 0 '' 'a client right after a death'
[[ $(pid_of gpreemptd) != "$pid" ]] || fail 'it is not another one'

# Whatever happened: nothing that a program needed was kept from it.
! dmesg | grep 'type=1326' || fail 'a system call was refused'
unexpected=$(journalctl --output=cat --priority=warning SYSLOG_IDENTIFIER=gpreemptd |
	grep -vE '^(device\.none|keeper\.gone|config\.(rejected|restart)) ')
[[ ! $unexpected ]] || fail "warnings: $unexpected"
unexpected=$(journalctl --output=cat --priority=warning SYSLOG_IDENTIFIER=gpreempt-keeper |
	grep -vE '^(warn scheduler\.silent|error owner\.hung) ')
[[ ! $unexpected ]] || fail "the keeper warns: $unexpected"
finish
