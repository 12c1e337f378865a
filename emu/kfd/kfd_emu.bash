# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For test scripts, which `source` it with KFD_EMU and KFD_LOAD set (tests/CMakeLists.txt):
#   start_kfd_emu [OPTION...]    starts kfd-emu; sets KFD_MNT, its folder; exports GPREEMPT_KFD,
#                                GPREEMPT_KFD_SYSFS and GPREEMPT_KFD_DEBUGFS. Exits 77 where there
#                                is no FUSE.
#   kfd_emu COMMAND...           one command for its file `control`
#   kfd_count NAME               a number of its file `counts`; 0 if it is not there
#   kfd_queue PID QUEUE FIELD    a value of a queue in its file `state`
#   kfd_process PID FIELD        the same, of a process
#   start_kfd_load [OPTION...]   starts kfd-load; sets LOAD, its pid; what it prints goes to
#                                $KFD_TMP/PID
#   stop_kfd_load PID            ends it; returns its exit status
#   stop_kfd_emu                 also at the end of the script: ends the loads, unmounts
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../common/emulator.bash"
KFD_STARTED=()

start_kfd_emu() {
	need_fuse
	KFD_TMP=$(mktemp -d)
	KFD_MNT=$KFD_TMP/mount
	mkdir "$KFD_MNT"
	trap stop_kfd_emu EXIT
	trap 'exit 143' TERM INT
	"$KFD_EMU" "$@" "$KFD_MNT" >"$KFD_TMP/out" 2>&1 &
	KFD_EMU_PID=$!
	wait_ready "$KFD_EMU_PID" "$KFD_TMP/out" || exit 77
	export GPREEMPT_KFD=$KFD_MNT/kfd GPREEMPT_KFD_SYSFS=$KFD_MNT/sysfs
	export GPREEMPT_KFD_DEBUGFS=$KFD_MNT/debugfs
}

kfd_emu() {
	echo "$*" >"$KFD_MNT/control"
}

kfd_count() {
	awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$KFD_MNT/counts"
}

kfd_queue() {
	grep "\"pid\":$1,\"queue\":$2," "$KFD_MNT/state" | sed "s/.*\"$3\":\([^,}]*\).*/\1/"
}

kfd_process() {
	grep "\"process\":$1," "$KFD_MNT/state" | sed "s/.*\"$2\":\([^,}]*\).*/\1/"
}

start_kfd_load() {
	local out
	out=$(mktemp "$KFD_TMP/load.XXXXXX")
	"$KFD_LOAD" "$@" >"$out" 2>&1 &
	LOAD=$!
	KFD_STARTED+=("$LOAD")
	ln -s "$out" "$KFD_TMP/$LOAD"
	wait_ready "$LOAD" "$out"
}

stop_kfd_load() {
	kill "$1" 2>/dev/null || true
	wait "$1"
}

stop_kfd_emu() {
	for load in "${KFD_STARTED[@]}"; do
		kill -9 "$load" 2>/dev/null || true
	done
	KFD_STARTED=()
	if [[ ${KFD_EMU_PID-} ]]; then
		stop_mount "$KFD_EMU_PID" "$KFD_TMP"
		KFD_EMU_PID=
	fi
}
