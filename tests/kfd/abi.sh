#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# abi.sh KFD_ABI_H KFD_ABI_CHECK_C: every structure's size, and every member's place, is checked.
set -euo pipefail

# members FILE: "struct member" of each, "struct union_member.member" of those in the union.
members() {
	sed 's|/\*.*\*/||' "$1" | awk '
		/^struct kfd_[a-z_]+ \{/ { type = $2; print type; next }
		/^\};/ { type = "" }
		type == "" { next }
		/^\t\tstruct \{/ { n = 0; inner = 1; next }
		/^\t\t\} [a-z_]+;/ { name = $2; sub(";", "", name); inner = 0
			for (i = 0; i < n; i++) print type, name "." held[i]; next }
		/uint[0-9]+_t / { line = $0; sub(/^.*uint[0-9]+_t /, "", line); sub(/;.*/, "", line)
			count = split(line, part, /, */)
			for (i = 1; i <= count; i++)
				if (inner) held[n++] = part[i]; else print type, part[i] }' | sort
}
checked() {
	sed -n 's/^SIZE(\(kfd_[a-z_]*\), .*/\1/p; s/^AT(\(kfd_[a-z_]*\), \([a-z_.]*\),.*/\1 \2/p' "$1" | sort
}

members "$1" >"${TMPDIR:-/tmp}/abi.$$"
trap 'rm -f "${TMPDIR:-/tmp}/abi.$$"' EXIT
all=$(wc -l <"${TMPDIR:-/tmp}/abi.$$")
((all > 100)) || { echo "only $all members were found"; exit 1; }
if left_out=$(checked "$2" | diff "${TMPDIR:-/tmp}/abi.$$" -); then
	echo "$all sizes and members are checked"
else
	echo "not checked (<), or not there (>):"
	echo "$left_out"
	exit 1
fi
