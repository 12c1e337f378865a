#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kfd.sh KFD-CASES FOLDER: the real amdkfd driver answers as the table expects. What it answered
# stays in FOLDER/kfd.out, for the emulator to be compared with.
set -euo pipefail
here=$(dirname "$0")
mkdir -p "$2"

status=0
"$here/run" "$2/kernel" "$1" "$here/kfd_guest.sh" -- kfd_guest.sh >"$2/kfd.new" || status=$?
cat "$2/kfd.new"
if grep -q '^cases:' "$2/kfd.new"; then
	mv "$2/kfd.new" "$2/kfd.out"
else
	rm "$2/kfd.new"
fi
exit "$status"
