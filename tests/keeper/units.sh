#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The service manager accepts our units, and says how open they are. Needs BUILD.
set -euo pipefail

if ! command -v systemd-analyze >/dev/null; then
	echo 'there is no systemd-analyze'
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# It looks whether the program is there: the one that was built stands for what will be installed.
for unit in "$BUILD"/systemd/*.service; do
	copy=$work/${unit##*/}
	program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
	[[ -x $BUILD/${program##*/} ]] || {
		echo "$unit starts $program, which is not built"
		exit 1
	}
	sed "s|${program%/*}/|$BUILD/|" "$unit" >"$copy"
	# Other units' troubles, and pages that are not installed, are not ours.
	said=$(systemd-analyze verify --man=no "$copy" 2>&1 | grep -F "${unit##*/}" || true)
	if [[ $said ]]; then
		echo "$said"
		exit 1
	fi
	systemd-analyze security --offline=true --threshold=60 "$copy" >"$work/score" ||
		{
			grep -E '✗' "$work/score"
			exit 1
		}
	tail -n 1 "$work/score"
done
