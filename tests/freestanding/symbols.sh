#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The policies that the kernel module shares need nothing from outside but the four functions
# that a compiler may call on its own. Arguments: their object files.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ld -r -o "$work/all.o" "$@"
left=$(nm -u "$work/all.o" | awk '{ print $NF }' | grep -vxE 'mem(cpy|set|move|cmp)' || true)
if [[ $left ]]; then
	printf 'Undefined in the freestanding policies:\n%s\n' "$left"
	exit 1
fi
