#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A process with bytes in its name that are no text, or that a terminal obeys: all users still get
# their answers, and no line or escape sequence of the name reaches a terminal or the log.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
begin_daemon --policy priority
in_background events "$GPREEMPT" events --json
subscribed() { # each answer of stats counts the clients
	[[ $("$GPREEMPT" stats --json | jq .daemon.clients) -ge 2 ]]
}
until_true subscribed || fail 'no subscription'
in_ps() { # in_ps PATTERN
	"$GPREEMPT" ps 2>/dev/null | grep -q "$1"
}
count_in_ps() { # count_in_ps N
	[[ $("$GPREEMPT" ps --json 2>/dev/null | jq length) == "$1" ]]
}

# The kernel takes the name of a process from the file that it executes, at most 15 bytes.
evil=$'\xff\e[2J\n9 x\xc2\x9b'
cp "$GPREEMPT" "$work/$evil"
in_background evil "$work/$evil" simload --for 100s
shown='\\xff\\x1b\[2J\\x0a9 x\\xc2\\x9b'
until_true in_ps "$shown" || fail "ps: $("$GPREEMPT" ps 2>&1)"

# is_text FILE: valid UTF-8 without control characters other than the end of a line.
is_text() {
	iconv -f UTF-8 -t UTF-8 "$1" >"$work/utf8" 2>/dev/null &&
		! LC_ALL=C tr -d '\n' <"$1" | LC_ALL=C grep -q '[[:cntrl:]]' && ! grep -q $'\xc2\x9b' "$1"
}
for verb in 'ps' 'ps --json' 'stats' 'stats --json' 'top --once'; do
	# shellcheck disable=SC2086
	"$GPREEMPT" $verb >"$work/out" 2>"$work/err" || fail "$verb: $(<"$work/err")"
	is_text "$work/out" || fail "$verb: $(cat -v "$work/out")"
done

"$GPREEMPT" suspend "$JOB" >"$work/out" 2>&1 || fail "suspend: $(<"$work/out")"
grep -q "$shown" "$work/out" || fail "suspend does not show the name: $(cat -v "$work/out")"
"$GPREEMPT" set "$JOB" --class be >>"$work/out" 2>&1 || fail "set: $(<"$work/out")"
"$GPREEMPT" resume "$JOB" >>"$work/out" 2>&1 || fail "resume: $(<"$work/out")"
is_text "$work/out" || fail "suspend, set, resume: $(cat -v "$work/out")"
until_true said events released || fail 'no event of the release'
is_text "$work/events" || fail "events: $(cat -v "$work/events")"
grep -q 'xff' "$work/events" || fail 'the events do not name the process'
is_text "$work/daemon" || fail "the log: $(cat -v "$work/daemon")"

# A name that a program gives itself with its first queue.
in_background named "$GPREEMPT" simload --name "$evil" --for 100s
until_true count_in_ps 2 || fail "ps: $("$GPREEMPT" ps 2>&1)"
"$GPREEMPT" ps >"$work/out" || fail 'ps with a name from the program'
is_text "$work/out" || fail "ps: $(cat -v "$work/out")"
finish
