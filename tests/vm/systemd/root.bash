# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The guest's files: this machine's systemd and what it needs, a few programs for the tests, busybox
# for the rest, and gpreempt as it is installed. After vm.bash.

# What of the package is not for people to read, and not for parts of a machine that are not there:
# each service of a boot takes half a second.
files_of_systemd() {
	dpkg -L systemd | grep -vE '^/usr/share/|^/(usr/)?lib/(environment|modprobe|udev|kernel)|systemd/(system/)?user' |
		grep -vE -e '-generator$|user-(env|gen|preset)|\.wants/(sys-|dev-|proc-|.*(sysctl|modules|binfmt|random-seed|utmp|static-nodes|pcr|repart|ask-password|user-sessions|machine-id))' |
		while read -r file; do
			if [[ -L $file || -f $file ]]; then
				echo "${file#/}"
			fi
		done
}

# with_libraries ROOT: all libraries that its programs need.
with_libraries() {
	find "$1" -type f -perm /111 -size +4k -print0 | xargs -0 bash -c "$(declare -f libraries_of)"'; libraries_of "$@"' - |
		grep -v "^$1" | xargs cp --parents --dereference --no-clobber -t "$1"
}

make_root() { # make_root FOLDER
	local applet folder
	dpkg -L systemd >/dev/null 2>&1 || skip 'systemd is not installed as a Debian package (tools/setup test)'
	mkdir -p "$1"/{dev,etc/systemd/system,home,proc,root,run,sys,tmp,usr/bin,usr/sbin,usr/lib,usr/lib64,var/log,var/lib}
	for folder in bin sbin lib lib64; do
		ln -s "usr/$folder" "$1/$folder"
	done
	files_of_systemd | tar -C / -c --no-recursion --verbatim-files-from -T - |
		tar -C "$1" -x --keep-directory-symlink
	cp "$(command -v busybox)" "$(command -v bash)" "$(command -v setpriv)" "$1/usr/bin/"
	for applet in $(busybox --list); do
		[[ -e $1/usr/bin/$applet || -e $1/usr/sbin/$applet ]] || ln -s busybox "$1/usr/bin/$applet"
	done
	cp /etc/os-release "$1/etc/"
	echo 00000000000000000000000000000001 >"$1/etc/machine-id" # it has been booted before
	echo guest >"$1/etc/hostname"
	echo root:x:0:0:root:/root:/bin/bash >"$1/etc/passwd"
	echo root:x:0: >"$1/etc/group"
	# No terminals and no sessions.
	ln -s /dev/null "$1/etc/systemd/system/getty.target"
	ln -s /dev/null "$1/etc/systemd/system/systemd-logind.service"
}

# As docs/operations.md has it.
install_gpreempt() { # install_gpreempt ROOT BUILD
	# shellcheck disable=SC2154 # vm.bash makes it
	DESTDIR=$1 cmake --install "$2" >"$work/install" 2>&1 || fail "cmake --install: $(<"$work/install")"
	systemctl --root "$1" enable gpreempt-keeper gpreemptd 2>"$work/install" ||
		fail "systemctl enable: $(<"$work/install")"
	with_libraries "$1"
}

install_tests() { # install_tests ROOT TESTS-VM BUILD
	mkdir "$1/tests"
	echo "boot ${VM_PARTS-users rules sandbox journal reload deaths hang order sockets}" >"$1/tests/parts"
	cp "$2"/systemd/{*.sh,guest.bash} "$2/../cli/check.bash" "$1/tests/"
	cp "$3/tests/vm/mute-mount" "$1/tests/"
	cp "$2"/systemd/*.service "$1/etc/systemd/system/"
	systemctl --root "$1" --quiet enable tests.service
}
