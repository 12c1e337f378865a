# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For tests of gpreempt top: tmux is the terminal, and what stands on its screen is read. After
# `begin_top` there are a daemon, a simulated GPU, a service and two jobs.
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
if ! "$GPREEMPT" top --help >/dev/null 2>&1 || ! command -v tmux >/dev/null; then
	echo 'gpreempt top or tmux is not there'
	exit 77
fi

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
	shows '^show tasks whose name or user contains: _' 'f asks for a name'
	keys "$1" Enter
	shows "1 of [0-9]+ tasks match '$1'" "only $1"
}
choose_all() {
	keys f BSpace BSpace BSpace BSpace BSpace BSpace Enter
	shows '[0-9]+ tasks on 1 device' 'all tasks again'
}

begin_top() {
	DEVICES=1 begin_daemon --policy priority
	trap 'close_terminal; end_jobs; rm -rf "$work"' EXIT
	load train --kernel 5ms
	# shellcheck disable=SC2034 # for the scripts that use this
	train=$LOAD
	load batch --kernel 5ms
	load serve --kernel 300us --every 5ms
	# shellcheck disable=SC2034
	serve=$LOAD
}
