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

for file in bin/gpreempt bin/gpreempt-simgpu sbin/gpreempt-keeper \
	lib/systemd/system/gpreempt-keeper.service \
	include/gpreempt.h libgpreempt.so libgpreempt.so.0 pkgconfig/gpreempt.pc \
	share/bash-completion/completions/gpreempt share/doc/gpreempt/LICENSE \
	share/doc/gpreempt/LICENSES/Apache-2.0.txt etc/gpreempt/gpreempt.yaml \
	share/gpreempt/grafana/gpreempt.json share/gpreempt/prometheus/gpreempt.rules.yml; do
	installed "$file" >/dev/null || fail "$file is missing"
done
# An administrator's own file stays.
config=$(installed etc/gpreempt/gpreempt.yaml)
echo '# mine' >>"$config"
DESTDIR=$root cmake --install "$BUILD" >"$root/log" || fail "cmake --install: $(<"$root/log")"
[[ $(tail -n 1 "$config") == '# mine' ]] || fail "the configuration was overwritten"
for file in "$SRC"/scenarios/*.yaml; do
	[[ ! -e $file ]] || installed "share/gpreempt/scenarios/${file##*/}" >/dev/null ||
		fail "${file##*/} is missing"
done
for file in "$SRC"/examples/*.c; do
	installed "share/doc/gpreempt/examples/${file##*/}" >/dev/null || fail "${file##*/} is missing"
done
for file in "$SRC"/man/*.[13578]; do
	[[ ! -e $file ]] || installed "share/man/man${file##*.}/${file##*/}" >/dev/null ||
		fail "${file##*/} is missing"
done

library=$(installed libgpreempt.so.0)
stray=$(nm -D --defined-only "$library" | awk '$3 !~ /^(gpreempt_|GPREEMPT_)/ { print $3 }')
[[ ! $stray ]] || fail "the library exports $stray"
# What the header promises is there, and has a man page that names it.
calls=$(sed -n 's/^GPREEMPT_API .*\(gpreempt_[a-z_]*\)(.*/\1/p' "$(installed include/gpreempt.h)")
[[ $(wc -l <<<"$calls") -ge 15 ]] || fail "the header has no calls: $calls"
for call in $calls; do
	nm -D --defined-only "$library" | grep -q " T $call@" || fail "$call is not exported"
	grep -rqF ".Nm $call" "$(dirname "$(installed share/man/man3/libgpreempt.3)")" ||
		fail "$call has no man page"
done
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux')
[[ $needed == libc.so.* ]] || fail "the library needs $needed"

keeper=$(installed sbin/gpreempt-keeper)
needed=$(readelf -d "$keeper" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux')
[[ $needed == libc.so.* ]] || fail "the keeper needs $needed"
grep -q "^ExecStart=/.*/${keeper##*/}$" "$(installed lib/systemd/system/gpreempt-keeper.service)" ||
	fail 'the unit does not start the keeper'

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

# The examples, as their first comment says to compile them, on a machine without a GPU.
export GPREEMPT_NVIDIACTL=/nonexistent GPREEMPT_KFD=/nonexistent GPREEMPT_KFD_SYSFS=/nonexistent
for file in "$(dirname "$(installed share/doc/gpreempt/examples/list.c)")"/*.c; do
	[[ $file != */aside.c ]] || continue # is preloaded
	# shellcheck disable=SC2046
	"$CC" -Wall -Wextra -Werror -o "$root/example" "$file" $(pkg-config --cflags --libs gpreempt)
	arguments=($$)
	[[ $file != */hold.c ]] || arguments+=(true)
	status=0
	output=$(LD_LIBRARY_PATH=${library%/*} "$root/example" "${arguments[@]}" 2>&1) || status=$?
	[[ $status == 1 && $output == *'gpreempt doctor'* ]] ||
		fail "${file##*/} without a GPU: exit $status, $output"
done
# shellcheck disable=SC2046
"$CC" -Wall -Wextra -Werror -shared -fPIC -o "$root/aside.so" \
	"$(installed share/doc/gpreempt/examples/aside.c)" $(pkg-config --cflags --libs gpreempt)
# shellcheck disable=SC2016 # for the inner shell
output=$(LD_LIBRARY_PATH=${library%/*} LD_PRELOAD=$root/aside.so "$BASH" -c 'kill -USR1 $$; read -t 1 -r _' \
	2>&1 </dev/zero) || true
[[ $output == *'aside: '*'gpreempt doctor'* ]] || fail "aside.c without a GPU: $output"
if cxx=$(command -v c++ || command -v clang++); then # the header is for C++, too
	# shellcheck disable=SC2046
	echo '#include <gpreempt.h>' | "$cxx" -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror \
		-fsyntax-only $(pkg-config --cflags gpreempt) - || fail "the header is not C++"
fi

"$(installed bin/gpreempt)" --version | grep -qF "$(pkg-config --modversion gpreempt)" ||
	fail "gpreempt --version does not name the version"
