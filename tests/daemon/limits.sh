#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A limit of GPU memory is for everybody: also for who was registered, and who holds himself.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
cat >"$work/config" <<'END'
memory_limit: 1GiB
on_memory_limit: hold
rules:
  - match: {cmdline: "*--name small*"}
    class: be
    memory_limit: 100MiB
    on_memory_limit: hold
END
"$GPREEMPTD" --check --config "$work/config" >/dev/null || fail 'the configuration is wrong'
is_held() { # NAME
	"$GPREEMPT" ps --json |
		jq -e "any(.[]; .name == \"$1\" and (.held_by | index(\"user\")) and .state == \"suspended\")" >/dev/null
}
begin_daemon --config "$work/config"

# One that nobody said anything of is only reported.
in_background free "$GPREEMPT" simload --name free --memory 4096
free=$JOB
until_true said free ready || fail "the program does not start: $(<"$work/free")"
until_true said daemon "memory.limit-exceeded pid=$free " || fail "it is not seen: $(<"$work/daemon")"

# Registered before it had a queue, by its owner.
in_background large "$GPREEMPT" run --class be -- "$GPREEMPT" simload --name large --memory 4096
until_true said large ready || fail "the program does not start: $(<"$work/large")"
until_true is_held large || fail "it is not held: $("$GPREEMPT" ps --json)"
! is_held free || fail 'an unmanaged process is held' # its hold would have been ordered before

# What was unmanaged when it passed its limit, and is not any more.
"$GPREEMPT" set "$free" --class be >/dev/null || fail 'the class is refused'
until_true is_held free || fail "it got a class and is not held: $("$GPREEMPT" ps --json)"
(($(grep -c "memory.limit-exceeded pid=$free " "$work/daemon") == 1)) || fail 'it passed its limit once'

# By a rule that is not about what it is, but about its memory.
in_background small "$GPREEMPT" run --class be -- "$GPREEMPT" simload --name small --memory 200
until_true said small ready || fail "the program does not start: $(<"$work/small")"
until_true is_held small || fail "it is not held: $("$GPREEMPT" ps --json)"

finish
