#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The daemon hangs in the kernel with a task held, and no signal ends it. The keeper releases the task,
# the watchdog gives the daemon up, and systemd starts a new daemon beside it.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
configure <<<'policy: none'
systemctl restart gpreemptd
until_true has_device || fail 'no device after a restart'
start_load job carol
job=$LOAD
hung=$(pid_of gpreemptd)
hold "$job"

# The run-time folder, as this daemon sees it, does not answer any more.
nsenter -t "$hung" -m -- /tests/mute-mount /run/gpreempt &
mute=$!
began=$SECONDS
runs "$job" 'the keeper releases nothing of a daemon that hangs'
((SECONDS - began < 9)) || fail "released after $((SECONDS - began)) s"
[[ $(pid_of gpreemptd) == "$hung" ]] || fail 'that was the watchdog, not the keeper'

# The watchdog after 10 s; then systemd waits 10 s (TimeoutStopSec) five times for the end.
sleep 50
is_replaced() {
	[[ $(pid_of gpreemptd) != @(0|"$hung") ]] && has_device
}
until_true is_replaced || fail "no other daemon: $(systemctl --no-pager status gpreemptd)"
echo "another daemon after $((SECONDS - began)) s"
[[ -e /proc/$hung ]] || fail 'the first daemon has ended: nothing was tried'
grep -q '^State:.D' /proc/"$hung"/status || fail "$(grep State /proc/"$hung"/status)"
for text in 'Watchdog timeout' 'Processes still around after final SIGKILL' 'Found left-over process'; do
	said gpreemptd "$text" || fail "systemd does not say '$text'"
done
said gpreempt-keeper "error owner.hung pid=$hung" || fail 'the keeper says nothing'

# What the new daemon holds stays held, although the first one is not gone.
until_true is_seen "$job" || fail 'the new daemon does not see the program'
hold "$job"
sleep 5
stands "$job" 'the new daemon holds it'
kill "$mute"
has_ended() {
	[[ ! -e /proc/$hung ]]
}
until_true has_ended || fail 'the first daemon does not end when its call returns'
stands "$job" 'after the end of the first daemon'
try gpreempt resume "$job"
exits 0 '' resume
is_put_back "$job" 'after resume'
systemctl stop job
finish
