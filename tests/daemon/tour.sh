#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tour of README.md: with no root and no GPU, the daemon, two programs and the verbs, in less than
# a minute; nothing is left behind.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

# As somebody else, who need not be able to enter our folders.
user=()
if [[ $EUID == 0 ]]; then
	user=(setpriv --reuid 54321 --regid 54321 --clear-groups)
fi
home=$(mktemp -d)
trap 'rm -rf "$home" "$work"' EXIT
chmod 755 "$home"
mkdir "$home/tmp" "$home/bin"
chmod 1777 "$home/tmp"
cp "$BUILD"/gpreempt{,d,-keeper,-simgpu} "$SRC/tools/tour" "$home/bin" || fail 'not built'

SECONDS=0
out=$(cd / && env -u GPREEMPT_RUN -u XDG_RUNTIME_DIR TMPDIR="$home/tmp" timeout 100 "${user[@]}" \
	"$home/bin/tour" "$home/bin" 2>&1) || fail "the tour ended with $?: $out"
took=$SECONDS
echo "$out"
echo "the tour took $took s"
((took < 60)) || fail "the tour took $took s"

# What a visitor should have seen.
[[ $out == *'in force on 1 device'* ]] || fail 'set was not in force'
[[ $out == *' be '*train* && $out == *' lc '*service* ]] || fail 'ps shows no classes'
[[ $out == *suspended* ]] || fail 'suspend does not show'
# After the death of the daemon: it runs again, and is still best-effort.
after=${out##*kill -9}
[[ $after == *' be '*train* && $after != *suspended* ]] || fail "after the kill: $after"
# The service's p99 beside the job, before and after.
mapfile -t p99 < <(grep -o 'p99 [0-9.]* [mu]s' <<<"$out")
echo "${p99[*]}"

left=$(find "$home/tmp" -mindepth 1)
[[ ! $left ]] || fail "left behind: $left"
left=$(pgrep -r D,R,S,T,t -U "${EUID/#0/54321}" -a gpreempt) # not zombies: the init of a container may not reap
[[ ! $left ]] || fail "still running: $left"
finish
