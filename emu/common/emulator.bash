# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For nvidia/emu.bash and kfd/kfd_emu.bash.

# need_fuse: ends the script with 77 where an emulator cannot be started.
need_fuse() {
	if [[ ! -w /dev/fuse || $EUID != 0 ]]; then
		echo "the emulator needs /dev/fuse and root"
		exit 77
	fi
}

# wait_ready PID FILE: until the process has written `ready` there.
wait_ready() {
	for _ in {1..2000}; do
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

# stop_mount PID FOLDER: ends an emulator that is mounted in FOLDER/mount, and removes the folder.
stop_mount() {
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
	umount -l "$2/mount" 2>/dev/null || true
	rm -rf --one-file-system "$2"
}
