# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For the scripts beside it, which `source` it: programs that say `ready` and wait for a line.
#   start NAME PROGRAM...   starts it, with its output in $work/NAME.log, and waits for `ready`; sets
#                           PID, and GATE for go
#   go GATE                 lets it begin
#   stop PID...             ends programs and waits for them; all of them at the end of the script
work=$(mktemp -d)
started=()

stop() {
	local pid
	for pid; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}
trap 'stop "${started[@]}"; rm -rf "$work"' EXIT

start() {
	local name=$1 i
	shift
	rm -f "$work/$name.in"
	mkfifo "$work/$name.in"
	"$@" <"$work/$name.in" >"$work/$name.log" 2>&1 &
	PID=$!
	started+=("$PID")
	# shellcheck disable=SC2034
	exec {GATE}>"$work/$name.in"
	for ((i = 0; i < 600; i++)); do
		if grep -q '^ready$' "$work/$name.log"; then
			return
		fi
		kill -0 "$PID" 2>/dev/null || break
		sleep 0.1
	done
	echo "$0: $name is not ready: $(tail -n 1 "$work/$name.log")" >&2
	exit 1
}

go() {
	echo >&"$1"
}
