#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What is installed is complete and works from where it is: files, exported symbols, pkg-config,
# a program that uses the library. Needs BUILD, SRC and CC.
set -euo pipefail

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
	echo "install: $*"
	exit 1
}

DESTDIR=$root cmake --install "$BUILD" >"$root/log" || fail "cmake --install: $(<"$root/log")"

installed() {
	find "$root" -path "*/$1" -print -quit | grep .
}

for file in bin/gpreempt include/gpreempt.h libgpreempt.so libgpreempt.so.0 pkgconfig/gpreempt.pc \
	share/bash-completion/completions/gpreempt share/doc/gpreempt/LICENSE \
	share/doc/gpreempt/LICENSES/Apache-2.0.txt; do
	installed "$file" >/dev/null || fail "$file is missing"
done
for file in "$SRC"/scenarios/*.yaml; do
	[[ ! -e $file ]] || installed "share/gpreempt/scenarios/${file##*/}" >/dev/null ||
		fail "${file##*/} is missing"
done
for file in "$SRC"/man/*.[1357]; do
	[[ ! -e $file ]] || installed "share/man/man${file##*.}/${file##*/}" >/dev/null ||
		fail "${file##*/} is missing"
done

library=$(installed libgpreempt.so.0)
stray=$(nm -D --defined-only "$library" | awk '$3 !~ /^(gpreempt_|GPREEMPT_)/ { print $3 }')
[[ ! $stray ]] || fail "the library exports $stray"
nm -D --defined-only "$library" | grep -q ' T gpreempt_version' || fail "gpreempt_version is not exported"
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux')
[[ $needed == libc.so.* ]] || fail "the library needs $needed"

cat >"$root/program.c" <<'END'
#include <errno.h>
#include <gpreempt.h>
#include <stdio.h>
int main(void)
{
	printf("%s\n%s\n%s\n", gpreempt_version(), gpreempt_error_text(-EPERM), gpreempt_error_text(7));
}
END
pc=$(installed pkgconfig/gpreempt.pc)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$root
# shellcheck disable=SC2046 # one word per flag
"$CC" -Wall -Wextra -Werror -o "$root/program" "$root/program.c" $(pkg-config --cflags --libs gpreempt)
output=$(LD_LIBRARY_PATH=${library%/*} "$root/program")
expected=$(pkg-config --modversion gpreempt; echo "Operation not permitted"; echo "Unknown error")
[[ $output == "$expected" ]] || fail "the program printed: $output"

"$(installed bin/gpreempt)" --version | grep -qF "$(pkg-config --modversion gpreempt)" ||
	fail "gpreempt --version does not name the version"
