# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For test scripts, which `source` it with RM_EMU, RM_LOAD and NVML_EMU set (tests/CMakeLists.txt):
#   start_emu [OPTION...]    starts rm-emu; sets EMU, its folder; exports GPREEMPT_NVIDIACTL and
#                            GPREEMPT_NVML. Exits 77 where there is no FUSE.
#   emu COMMAND...           one command for its file `control`
#   emu_count NAME           a number of its file `counts`; 0 if it is not there
#   start_load [OPTION...]   starts rm-load; sets LOAD, its pid; what it prints goes to $EMU_TMP/PID
#   stop_load PID            ends it; returns its exit status
#   stop_emu                 also at the end of the script: ends the loads, unmounts
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../common/emulator.bash"
EMU_LOADS=()

start_emu() {
	need_fuse
	EMU_TMP=$(mktemp -d)
	EMU=$EMU_TMP/mount
	mkdir "$EMU"
	trap stop_emu EXIT
	trap 'exit 143' TERM INT
	"$RM_EMU" "$@" "$EMU" >"$EMU_TMP/out" 2>&1 &
	EMU_PID=$!
	wait_ready "$EMU_PID" "$EMU_TMP/out" || exit 77
	export GPREEMPT_NVIDIACTL=$EMU/nvidiactl GPREEMPT_NVML=$NVML_EMU
}

emu() {
	echo "$*" >"$EMU/control"
}

emu_count() {
	awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$EMU/counts"
}

start_load() {
	local out
	out=$(mktemp "$EMU_TMP/load.XXXXXX")
	"$RM_LOAD" "$@" >"$out" 2>&1 &
	LOAD=$!
	EMU_LOADS+=("$LOAD")
	ln -s "$out" "$EMU_TMP/$LOAD"
	wait_ready "$LOAD" "$out"
}

stop_load() {
	kill "$1" 2>/dev/null || true
	wait "$1"
}

stop_emu() {
	for load in "${EMU_LOADS[@]}"; do
		kill -9 "$load" 2>/dev/null || true
	done
	EMU_LOADS=()
	if [[ ${EMU_PID-} ]]; then
		stop_mount "$EMU_PID" "$EMU_TMP"
		EMU_PID=
	fi
}
