#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What test scripts use (emu.bash): starting, disturbing, counting, ending.
set -euo pipefail
# shellcheck source=emu/nvidia/emu.bash
source "$SRC/emu/nvidia/emu.bash"

fail() {
	echo "$1"
	exit 1
}

start_emu --gpus 2 --client-index 0xf0000
start_load --idle --memory 4096
grep -q '"index":983040' "$EMU/state" || fail "the first client has another index"
[[ $(emu_count alloc) -gt 50 ]] || fail "allocations are not counted"
stop_load "$LOAD" || fail "an idle load failed"
start_load --count 20
first=$LOAD
wait "$first" || fail "the load failed: $(cat "$EMU_TMP/$first")"
grep -q 'kernels 20 .*checksum ok' "$EMU_TMP/$first" || fail "the load did something else"

emu reset_counts
[[ $(emu_count total) == 0 ]] || fail "counts were not reset"
if emu no such command 2>/dev/null; then
	fail "a wrong command was accepted"
fi

# A child keeps the file, and with it the memory, of a load that is gone.
start_load --idle --fork --memory 4096
child=$(awk '/^child/ { print $2 }' "$EMU_TMP/$LOAD")
kill -9 "$LOAD"
wait "$LOAD" || true
sleep 0.1
grep -q '^"memory":4096' "$EMU/state" || fail "memory was freed while a child had the file"
kill "$child"
for _ in {1..100}; do
	grep -q '^"memory":0' "$EMU/state" && break
	sleep 0.05
done
grep -q '^"memory":0' "$EMU/state" || fail "memory was not freed at the last close"

mount=$EMU
stop_emu
[[ ! -e $mount ]] || fail "something is left of $mount"
