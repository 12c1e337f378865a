#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stopped, started and restarted by hand: nothing stays held, and each unit starts those that it needs.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
start_load job carol
job=$LOAD
gpreempt set "$job" --class be --weight 55 >/dev/null || fail 'set'

hold "$job"
systemctl restart gpreemptd
is_put_back "$job" 'after a restart'
until_true is_seen "$job" || fail 'it is not seen after a restart'
[[ $(task "$job" weight) == 55 ]] || fail "after a restart it is $(gpreempt ps --json)"

hold "$job"
systemctl stop gpreemptd
is_put_back "$job" 'after a stop'
is_active gpreempt-keeper || fail 'the keeper stops with the daemon'
[[ $(property gpreemptd Result) == success ]] || fail "it stopped with $(property gpreemptd Result)"
try as bob gpreempt run --class be -- true
exits 125 'gpreempt: no daemon answers at /run/gpreempt/gpreemptd.sock; start it with *' 'run without a daemon'

# The keeper is started with the daemon.
systemctl stop gpreempt-keeper
systemctl start gpreemptd
is_active gpreempt-keeper || fail 'the daemon does not bring its keeper'
systemctl restart gpreempt-keeper
is_active gpreemptd || fail "with the keeper's restart it is $(property gpreemptd ActiveState)"
# At the end of everything, in one transaction, it goes last.
for unit in gpreempt-keeper gpreemptd; do
	mkdir -p /run/systemd/system/$unit.service.d
	printf '[Unit]\nPartOf=everything.target\n' >/run/systemd/system/$unit.service.d/everything.conf
done
echo '[Unit]' >/run/systemd/system/everything.target
systemctl daemon-reload
systemctl start everything.target
systemctl stop everything.target
for unit in gpreempt-keeper gpreemptd; do
	until_true is_inactive $unit || fail "$unit does not stop with everything"
done
daemon=$(property gpreemptd InactiveEnterTimestampMonotonic)
keeper=$(property gpreempt-keeper InactiveEnterTimestampMonotonic)
((daemon <= keeper)) || fail "the keeper ended at $keeper, before the daemon at $daemon"
rm -r /run/systemd/system/{gpreemptd,gpreempt-keeper}.service.d /run/systemd/system/everything.target
systemctl daemon-reload
systemctl stop job
finish
