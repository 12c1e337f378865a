#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# However the daemon ends, no task stays held, and the daemon is restarted.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
configure <<<'policy: none'
systemctl restart gpreemptd
until_true has_device || fail 'no device after a restart'
start_load job carol
job=$LOAD
gpreempt set "$job" --class be --weight 77 >/dev/null || fail 'set'
keeper=$(pid_of gpreempt-keeper)

is_another() { # PID: a daemon that is not this one is there and knows the job
	[[ $(pid_of gpreemptd) != "$1" ]] && has_device && [[ $(task "$job" weight) == 77 ]]
}

# comes_back PID WHY: a new daemon runs in its place, and no task is held.
comes_back() {
	is_put_back "$job" "$2"
	until_true is_another "$1" || fail "$2: the daemon does not come back as it was: $(gpreempt ps --json 2>&1)"
}

# ---- killed ----
pid=$(pid_of gpreemptd)
restarts=$(property gpreemptd NRestarts)
hold "$job"
kill -9 "$pid"
comes_back "$pid" 'the daemon was killed'
[[ $(property gpreemptd NRestarts) -gt $restarts ]] || fail 'systemd has not restarted it'
[[ $(pid_of gpreempt-keeper) == "$keeper" ]] || fail 'the keeper went with the daemon'

# ---- both killed ----
pid=$(pid_of gpreemptd)
hold "$job"
kill -9 "$keeper" "$pid"
comes_back "$pid" 'both were killed'
keeper_again() {
	[[ $(pid_of gpreempt-keeper) != @(0|"$keeper") ]] && is_active gpreempt-keeper
}
until_true keeper_again || fail 'the keeper does not come back'

# ---- killed without a keeper: what ExecStopPost is for ----
systemctl stop gpreempt-keeper
is_active gpreemptd || fail 'the daemon went with the keeper'
no_keeper() {
	said gpreemptd '^keeper.gone '
}
until_true no_keeper || fail 'the daemon does not notice that the keeper is gone'
pid=$(pid_of gpreemptd)
hold "$job"
kill -9 "$pid"
comes_back "$pid" 'it was killed without a keeper'
said gpreemptd "info undone pid=$job " || # the keeper's words, in the daemon's unit
	fail 'ExecStopPost has not put it back'
systemctl start gpreempt-keeper

# ---- out of memory; the kernel never takes the keeper for it (sandbox.sh) ----
pid=$(pid_of gpreemptd)
hold "$job"
systemctl set-property --runtime gpreemptd MemoryMax=64K # the kernel kills before this returns
systemctl set-property --runtime gpreemptd MemoryMax=infinity
no_memory() {
	said gpreemptd 'oom-kill'
}
until_true no_memory || fail 'it was not killed for lack of memory'
comes_back "$pid" 'the daemon had no memory'

# ---- stopped: the keeper first, then the watchdog ----
pid=$(pid_of gpreemptd)
hold "$job"
kill -STOP "$pid"
until_true is_loose "$job" || fail 'the keeper releases nothing of a daemon that is stopped'
[[ $(pid_of gpreemptd) == "$pid" ]] || fail 'that was the watchdog, not the keeper'
journalctl --output=cat --no-pager --unit gpreempt-keeper --priority=warning | grep -q "scheduler.silent pid=$pid" || fail 'the keeper says nothing'
until_true is_another "$pid" || until_true is_another "$pid" || fail 'the watchdog does not restart it'
said gpreemptd 'Watchdog timeout' || fail 'it was not the watchdog'
is_put_back "$job" 'after the watchdog'
systemctl stop job
finish
