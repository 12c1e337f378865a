#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt top: how it leaves the terminal, with and without colour and UTF-8, what the daemon
# refuses, and what pipes and programs get.
set -u
# shellcheck source=tests/daemon/terminal.bash
. "$SRC/tests/daemon/terminal.bash"
begin_top

# ---- the end ------------------------------------------------------------------------------------

open_terminal 80 24
keys "echo earlier; stty -g >$work/before" Enter
shows '^earlier$' 'what was there before'
for end in q C-c TERM; do
	rm -f "$work/after"
	keys "$GPREEMPT top; echo ended by $end with \$?; stty -g >$work/after" Enter
	shows '^DEV NAME' "top, to be ended by $end"
	has_not '^earlier$' || fail 'it is not on a screen of its own'
	if [[ $end == TERM ]]; then
		kill "$(pgrep -P "$(terminal display-message -p -t top '#{pane_pid}')")"
	else
		keys "$end"
	fi
	shows "^ended by $end with 0\$" "$end ends it"
	shows '^earlier$' "the screen after $end"
	hides '^DEV NAME' "the screen after $end"
	until_true cmp -s "$work/before" "$work/after" || fail "the terminal is not as before after $end"
done

# A new size is followed at once, not with the next picture.
open_terminal 80 24
keys "$GPREEMPT top --every 10m" Enter
shows '^ *PID USER .*P50 +P99 PRE/S NAME$' 'one picture for ten minutes'
shows ' [?] .*train$' 'which knows no shares yet'
resize 60 15
shows '^ *PID CLASS +PRI STATE +GPU\* +P99 +NAME$' 'the new size'
keys q

# ---- colours and letters ------------------------------------------------------------------------

coloured() {
	terminal capture-pane -e -p -t top | grep -q $'\033\\[[0-9;]*3[0-7]m'
}
open_terminal 80 24
keys "$GPREEMPT top" Enter
shows '^DEV NAME' 'with colour'
until_true coloured || fail 'there is no colour'
keys q
for how in "NO_COLOR=1 $GPREEMPT top" "$GPREEMPT top --no-colour"; do
	open_terminal 80 24
	keys "$how" Enter
	shows '(running|waiting) .*%.*(train|batch)$' "$how"
	coloured && fail "$how has colour"
	keys q
done
open_terminal 80 24
keys "LC_ALL=C $GPREEMPT top" Enter
shows '[>~] (running|waiting) +#+\.* +[0-9]+%.*(train|batch)$' 'in ASCII'
screen | LC_ALL=C grep -q '[^ -~]' && fail "not ASCII in the locale C: $(screen)"
keys q
open_terminal 80 24
keys "TERM=nonsense $GPREEMPT top" Enter
shows 'curses cannot use this terminal; check TERM, or use top --once' 'an unknown terminal'

# ---- what is refused ----------------------------------------------------------------------------

if [[ $EUID == 0 ]]; then
	chmod 711 "$work" "$GPREEMPT_RUN"
	install -m 755 "$GPREEMPT" "$work/gpreempt"
	open_terminal 80 24
	keys "setpriv --reuid 65534 --regid 65534 --clear-groups $work/gpreempt top" Enter
	choose serve
	keys h
	shows "^$serve serve: the process belongs to user 0; " 'the daemon says why not'
	shows 'may change it .try sudo.$' 'to the end'
	task "$serve" '.state != "suspended"' >/dev/null || fail 'somebody else held it'
	keys + q
fi

# ---- for pipes and programs ---------------------------------------------------------------------

COLUMNS=80 expect 0 '' 'top into a file' "$GPREEMPT" top --every 200ms
[[ $out == *'tasks on 1 device'*DEV*PID*train* && $out != *quit* ]] || fail "top into a file: $out"
[[ $(LC_ALL=C.UTF-8 wc -L <"$work/out") -le 80 ]] || fail "wider than COLUMNS: $out"
expect 0 '' 'top --json' "$GPREEMPT" top --json --every 300ms
holds '(.devices | length) == 1 and (.tasks | length) == 3 and .devices[0].busy_pct > 20' 'one picture'
holds '[.tasks[].gpu_pct] == ([.tasks[].gpu_pct] | sort | reverse) and .tasks[0].gpu_pct > 5' 'the busiest first'
expect 4 '*there is no device 5*' 'a device that is not there' "$GPREEMPT" top --once --device 5
for wrong in '--every 10ms' '--every soon' '--device x' 'there'; do
	# shellcheck disable=SC2086
	expect 2 '*' "top $wrong" "$GPREEMPT" top $wrong
done
GPREEMPT_SOCKET=$work/nobody try "$GPREEMPT" top --once
exits 1 '*no daemon answers at*systemctl start gpreemptd*' 'top without a daemon'
open_terminal 80 24 "GPREEMPT_SOCKET=$work/nobody"
keys "$GPREEMPT top; echo it ended with \$?" Enter
shows '^it ended with 1' 'top without a daemon in a terminal'
shows '^gpreempt: no daemon answers' 'and its sentence'
finish
