#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After a boot: group and folder are there, both services run, in their order, and wait for a GPU.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
state=$(systemctl is-system-running --wait)
[[ $state == running ]] || fail "the system is $state: $(systemctl --failed --no-legend)"

grep -q '^gpreempt:x:[0-9]*:$' /etc/group || fail "no group: $(</etc/group)"
[[ $(stat -c '%a %U:%G' /run/gpreempt) == '755 root:root' ]] || fail "$(stat /run/gpreempt)"
for unit in gpreempt-keeper gpreemptd; do
	is_active $unit || fail "$unit is $(property $unit ActiveState)"
done
keeper=$(property gpreempt-keeper ActiveEnterTimestampMonotonic)
daemon=$(property gpreemptd ExecMainStartTimestampMonotonic)
((keeper <= daemon)) || fail "the daemon started at $daemon, before the keeper was ready at $keeper"
[[ $(property gpreemptd StatusText) == 'Scheduling 0 devices' ]] || fail "$(property gpreemptd StatusText)"
said gpreemptd '^device.none ' || fail 'it does not say that there is no GPU'

# Without the boot: the snippets alone, as after an installation.
systemctl stop gpreemptd gpreempt-keeper
rm -r /run/gpreempt
sed -i '/^gpreempt:/d' /etc/group /etc/gshadow
systemd-sysusers
systemd-tmpfiles --create
grep -q '^gpreempt:' /etc/group || fail 'systemd-sysusers makes no group'
[[ $(stat -c '%a %U:%G' /run/gpreempt) == '755 root:root' ]] || fail 'systemd-tmpfiles makes no folder'

# An active service answers at once. A driver that is loaded later is found.
configure <<<'policy: none'
systemctl start gpreemptd
answers || fail 'it is active and does not answer'
is_active gpreempt-keeper || fail 'gpreemptd does not bring the keeper'
systemctl start simgpu
until_true has_device || fail 'the GPU that came later is not found'
[[ $(property gpreemptd StatusText) == 'Scheduling 1 device' ]] || fail "$(property gpreemptd StatusText)"
[[ $(stat -c '%a %U:%G' /run/gpreempt/gpreemptd.sock) == '666 root:gpreempt' ]] || fail "$(stat /run/gpreempt/gpreemptd.sock)"
[[ $(stat -c '%a %U:%G' /run/gpreempt/undo) == '600 root:root' ]] || fail "$(stat /run/gpreempt/undo)"

# alice governs, bob and carol have programs.
uid=1000
for user in alice bob carol; do
	echo "$user:x:$uid:$uid::/:/bin/bash" >>/etc/passwd
	echo "$user:x:$uid:" >>/etc/group
	uid=$((uid + 1))
done
sed -i '/^gpreempt:/s/$/alice/' /etc/group
finish
