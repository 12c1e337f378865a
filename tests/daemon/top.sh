#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt top in a terminal, as people use it: tmux is the terminal, and what stands on its screen
# is read. What keys do is asked of the daemon, not of the screen.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
if ! "$GPREEMPT" top --help >/dev/null 2>&1 || ! command -v tmux >/dev/null; then
	echo 'gpreempt top or tmux is not there'
	exit 77
fi

# ---- a terminal ---------------------------------------------------------------------------------

terminals=0 # a server for each: one that ends would take its socket from the next

terminal() {
	TMUX='' TMUX_TMPDIR=$work tmux -L "top$terminals" -f "$work/tmux.conf" -u "$@"
}

close_terminal() {
	terminal kill-server 2>/dev/null
}
# open_terminal COLUMNS ROWS [VARIABLE=VALUE...]: a shell in it; the one before is closed.
open_terminal() {
	local size=(-x "$1" -y "$2")
	shift 2
	close_terminal
	terminals=$((terminals + 1))
	printf 'set -g %s\n' 'default-terminal screen-256color' 'status off' >"$work/tmux.conf"
	terminal new-session -d -s top "${size[@]}" \
		"exec env -u NO_COLOR LC_ALL=C.UTF-8 PS1='shell: ' $* bash --norc --noprofile --noediting" || {
		fail 'tmux does not start'
		finish
	}
	shows '^shell:' 'a shell'
}

screen() {
	terminal capture-pane -p -t top
}
# keys KEY...: as send-keys names them.
keys() {
	terminal send-keys -t top "$@"
}
has() {
	screen | grep -qE -- "$1"
}
has_not() {
	! has "$1"
}
# shows REGEX CLAIM, hides REGEX CLAIM: in a moment; if not, what follows makes no sense either.
shows() {
	until_true has "$1" && return
	fail "$2: no '$1' on the screen:"$'\n'"$(screen)"
	finish
}
hides() {
	until_true has_not "$1" && return
	fail "$2: '$1' is on the screen:"$'\n'"$(screen)"
	finish
}
resize() {
	terminal resize-window -t top -x "$1" -y "$2"
}
# choose NAME: the only one that is left.
choose() {
	keys f
	shows '^show whose name or user has: _' 'f asks for a name'
	keys "$1" Enter
	shows "1 of [0-9]+ tasks have '$1'" "only $1"
}
choose_all() {
	keys f BSpace BSpace BSpace BSpace BSpace BSpace Enter
	shows '[0-9]+ tasks on 1 device' 'all tasks again'
}

DEVICES=1 begin_daemon --policy priority
trap 'close_terminal; end_jobs; rm -rf "$work"' EXIT
load train --kernel 5ms
train=$LOAD
load batch --kernel 5ms
load serve --kernel 300us --every 5ms
serve=$LOAD

# ---- 80 x 24 ------------------------------------------------------------------------------------

open_terminal 80 24
keys "stty -g >$work/before; $GPREEMPT top; echo it ended with \$?; stty -g >$work/after" Enter
shows '^DEV NAME +POLICY +BUSY LAST MINUTE +PRE/S +INV/S$' 'the heads of devices'
shows '^  0 simulated H200 #0 +priority +[0-9]+% .*[▁▂▃▄▅▆▇█] +[0-9.]+ +[0-9.]+$' 'the device, busy'
shows '^ *PID USER +CLASS +PRI STATE +GPU\* +P50 +P99 PRE/S NAME$' 'the heads of tasks'
shows "^ *$train [a-z?0-9]+ +unmanaged +0 . (running|waiting) +[█▏▎▍▌▋▊▉·]+ +[0-9]+% .* train\$" 'a task with its share'
shows '[0-9.]+(us|ms) +[0-9.]+(us|ms) +[0-9.]+ serve$' 'the waits of a task'
shows '^q quit .* p policy$' 'the keys in the last line'
shows '^3 tasks on 1 device.* gpreemptd [0-9.]+, up ' 'the first line'

# ---- what keys do -------------------------------------------------------------------------------

choose serve
keys c
shows "^class of $serve serve: +l lc" 'c asks which class'
keys l
is "$serve" '.class == "lc"'
shows "^$serve serve: class lc\$" 'what came of it'
choose_all
choose train
keys c b
is "$train" '.class == "be"'
shows ' be +0 .*train$' 'the new class'
keys + + + -
is "$train" '.priority == 2'
shows ' be +2 .*train$' 'the new priority'
shows "^$train train: priority 2\$" 'and that it was set'
keys h
is "$train" '.state == "suspended" and (.held_by | index("user") != null)'
shows '■ suspended' 'the state in words'
stands_still "$train" || fail 'h does not hold it'
keys r
is "$train" '.state != "suspended"'
goes_on "$train" || fail 'r does not release it'
hides 'suspended' 'the state afterwards'
keys c Escape
shows '^left as it is$' 'Esc leaves the class'
task "$train" '.class == "be"' >/dev/null || fail 'Esc changed the class'
choose_all
keys p
shows '^>priority +strict classes' 'p lists policies, at the one in force'
keys j Enter
shows '^  0 simulated H200 #0 +rr ' 'another policy'
"$GPREEMPT" top --json | jq -e '.devices[0].policy == "rr"' >/dev/null || fail 'the policy was not set'
shows '^policy: rr$' 'that it was set'
keys p Up Enter
shows '^  0 simulated H200 #0 +priority ' 'and back'
keys s
shows 'P50\*' 's sorts by the next column'
keys z
shows '^z does nothing' 'a key that does nothing says so'
keys '?'
shows 'select a task' 'help'
keys x
shows '^DEV NAME' 'back from help'

# The selection is where j and k put it: the class is asked for another one.
keys j c
shows '^class of [0-9]+ ' 'j selects'
first=$(screen | tail -n 1)
keys Escape
keys k c
shows '^class of [0-9]+ ' 'k selects'
[[ $(screen | tail -n 1) != "$first" ]] || fail "k did not move: $first"
keys Escape

# ---- other sizes, while it runs -----------------------------------------------------------------

resize 120 40
shows '^ *PID USER .{60,}NAME$' 'a wider table'
[[ $(screen | wc -l) == 40 ]] || fail 'the screen has not 40 lines'
shows '^q quit' 'the keys in the last line of a larger screen'
[[ $(screen | tail -n 1) == 'q quit'* ]] || fail "the last line is '$(screen | tail -n 1)'"
resize 60 15
shows '^ *PID CLASS +PRI STATE +GPU +P99\*? +NAME$' 'columns go by importance'
hides 'USER' 'no user in 60 columns'
shows '(running|waiting|held|idle) .*train$' 'tasks in 60 columns'
[[ $(screen | tail -n 1) == 'q quit'* ]] || fail "the last line is '$(screen | tail -n 1)'"
resize 20 4
shows '(train|batch|serve)$' 'a task in 20 x 4'
resize 1 1
resize 80 24
shows '^DEV NAME +POLICY +BUSY' 'as before after all sizes'
shows '^ *PID USER' 'as before after all sizes'

# ---- a daemon that hangs, goes and comes --------------------------------------------------------

kill -STOP "$DAEMON"
shows '^the daemon has not answered for [0-9]+ s' 'a daemon that hangs'
keys '?'
shows 'select a task' 'keys while it hangs'
keys x
kill -CONT "$DAEMON"
shows '^3 tasks on 1 device' 'it answers again'
kill -KILL "$DAEMON"
wait "$DAEMON" 2>/dev/null
shows '^(no daemon answers|the daemon has closed)' 'a daemon that is gone'
keys h
shows '^there is no daemon to ask' 'an action without one'
start_daemon --policy priority
shows '^3 tasks on 1 device' 'it is found again'
is "$train" '.class == "be"'
shows ' be +2 .* [0-9]+% .*train$' 'its tasks and shares'

# ---- the end ------------------------------------------------------------------------------------

keys q
shows '^it ended with 0$' 'q ends it'
hides '^DEV NAME' 'the screen is as before'
until_true cmp -s "$work/before" "$work/after" || fail 'the terminal is not as before'
for signal in INT TERM; do
	keys "clear; $GPREEMPT top; echo it ended with \$?; stty -g >$work/after" Enter
	shows '^DEV NAME' "again, for SIG$signal"
	if [[ $signal == INT ]]; then
		keys C-c
	else
		kill "$(pgrep -P "$(terminal display-message -p -t top '#{pane_pid}')")"
	fi
	shows '^it ended with 0$' "SIG$signal ends it"
	until_true cmp -s "$work/before" "$work/after" || fail "the terminal is not as before after SIG$signal"
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
shows 'this terminal cannot show it .see TERM.; gpreempt top --once' 'an unknown terminal'

# ---- what is refused ----------------------------------------------------------------------------

if [[ $EUID == 0 ]]; then
	chmod 711 "$work" "$GPREEMPT_RUN"
	install -m 755 "$GPREEMPT" "$work/gpreempt"
	open_terminal 80 24
	keys "setpriv --reuid 65534 --regid 65534 --clear-groups $work/gpreempt top" Enter
	choose serve
	keys h
	shows "^$serve serve: the process belongs to user 0; " 'the daemon says why not'
	shows 'the group gpreempt$' 'to the end'
	task "$serve" '.state != "suspended"' >/dev/null || fail 'somebody else held it'
	keys + q
fi

# ---- for pipes and programs ---------------------------------------------------------------------

COLUMNS=80 try "$GPREEMPT" top --every 200ms
exits 0 '' 'top into a file'
[[ $out == *'tasks on 1 device'*DEV*PID*train* && $out != *quit* ]] || fail "top into a file: $out"
[[ $(LC_ALL=C.UTF-8 wc -L <"$work/out") -le 80 ]] || fail "wider than COLUMNS: $out"
try "$GPREEMPT" top --json --every 300ms
exits 0 '' 'top --json'
holds '(.devices | length) == 1 and (.tasks | length) == 3 and .devices[0].busy_pct > 20' 'one picture'
holds '[.tasks[].gpu_pct] == ([.tasks[].gpu_pct] | sort | reverse) and .tasks[0].gpu_pct > 5' 'the busiest first'
try "$GPREEMPT" top --once --device 5
exits 4 '*there is no device 5*' 'a device that is not there'
for wrong in '--every 10ms' '--every soon' '--device x' 'there'; do
	# shellcheck disable=SC2086
	try "$GPREEMPT" top $wrong
	exits 2 '*' "top $wrong"
done
GPREEMPT_SOCKET=$work/nobody try "$GPREEMPT" top --once
exits 1 '*no daemon answers at*systemctl start gpreemptd*' 'top without a daemon'
open_terminal 80 24 "GPREEMPT_SOCKET=$work/nobody"
keys "$GPREEMPT top; echo it ended with \$?" Enter
shows '^it ended with 1' 'top without a daemon in a terminal'
shows '^gpreempt: no daemon answers' 'and its sentence'
finish
