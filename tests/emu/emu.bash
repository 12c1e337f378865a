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
EMU_LOADS=()

start_emu() {
	if [[ ! -w /dev/fuse || $EUID != 0 ]]; then
		echo "the emulator needs /dev/fuse and root"
		exit 77
	fi
	EMU_TMP=$(mktemp -d)
	EMU=$EMU_TMP/mount
	mkdir "$EMU"
	trap stop_emu EXIT
	trap 'exit 143' TERM INT
	"$RM_EMU" "$@" "$EMU" >"$EMU_TMP/out" 2>&1 &
	EMU_PID=$!
	_wait_ready "$EMU_PID" "$EMU_TMP/out" || exit 77
	export GPREEMPT_NVIDIACTL=$EMU/nvidiactl GPREEMPT_NVML=$NVML_EMU
}

# _wait_ready PID FILE
_wait_ready() {
	for _ in {1..1000}; do
		if grep -q '^ready' "$2" 2>/dev/null; then
			return 0
		fi
		if ! kill -0 "$1" 2>/dev/null; then
			cat "$2"
			return 1
		fi
		sleep 0.01
	done
	return 1
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
	_wait_ready "$LOAD" "$out"
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
		kill "$EMU_PID" 2>/dev/null || true
		wait "$EMU_PID" 2>/dev/null || true
		umount -l "$EMU" 2>/dev/null || true
		rm -rf --one-file-system "$EMU_TMP"
		EMU_PID=
	fi
}
