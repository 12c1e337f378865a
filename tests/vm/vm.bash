# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the virtual machines of these tests share: Debian's 6.12 kernel, and QEMU. What the guest
# prints comes over its second serial port, with its status in the last line ("vm-status N"); what
# its kernel said over the third.
timeout=${VM_TIMEOUT:-240}

skip() {
	echo "vm: $*"
	exit 77
}

fail() {
	echo "vm: $*"
	exit 1
}

newest_kernel() { # the package; nothing where apt knows none
	apt-cache search --names-only '^linux-image-6\.12\.' 2>/dev/null |
		sed -n 's/^\(linux-image-6\.12\.[0-9]*+deb[0-9]*-amd64-unsigned\) .*/\1/p' |
		sort --version-sort | tail -n 1
}

# unpack_kernel PACKAGE FOLDER: vmlinuz and modules, which the file `order` lists. Since the guest is
# slow, they are uncompressed, and without the table for ftrace: the kernel looks up the name of each
# of its 14,000 places among all symbols, which takes 25 of 35 seconds.
unpack_kernel() {
	local tmp release module name
	tmp=$(mktemp -d "$2.XXXXXX")
	(cd "$tmp" && apt-get download "$1") >"$tmp/log" 2>&1 ||
		{ tail -n 1 "$tmp/log"; rm -r "$tmp"; skip "cannot download $1"; }
	dpkg-deb -x "$tmp"/*.deb "$tmp/root"
	release=${1#linux-image-}
	release=${release%-unsigned}
	mkdir "$tmp/kernel"
	cp "$tmp/root/boot/vmlinuz-$release" "$tmp/kernel/vmlinuz"
	[[ -d $tmp/root/lib/modules ]] || ln -s usr/lib "$tmp/root/lib"
	depmod -b "$tmp/root" "$release"
	modprobe -d "$tmp/root" -S "$release" --show-depends amdgpu | awk '{ print $2 }' |
		while read -r module; do
			name=$(basename "${module%.xz}")
			xz -dc "$module" >"$tmp/$name"
			objcopy -R __mcount_loc -R .rela__mcount_loc "$tmp/$name" "$tmp/kernel/$name"
			echo "$name" >>"$tmp/kernel/order"
		done
	mv "$tmp/kernel" "$2"
	rm -r "$tmp"
}

# vm_begin FOLDER: sets folder; kernel, the folder with what unpack_kernel left; and work, a folder
# for this run. Exits 77 where this cannot be tried.
vm_begin() {
	local tool package
	export PATH=$PATH:/usr/sbin:/sbin
	mkdir -p "$1"
	folder=$(realpath "$1")
	for tool in qemu-system-x86_64 busybox cpio xz objcopy depmod modprobe apt-cache dpkg-deb; do
		command -v "$tool" >/dev/null || skip "$tool is not installed (tools/setup test)"
	done
	! readelf -l "$(command -v busybox)" | grep -q INTERP || skip "busybox is not a static one"
	[[ $(uname -m) == x86_64 ]] || skip "needs an x86-64 machine"

	exec 9>"$folder/lock"
	flock 9
	package=$(newest_kernel)
	if [[ ! $package ]]; then # then one from before will do
		package=$(cd "$folder" && compgen -G 'linux-image-*-unsigned' | sort --version-sort | tail -n 1) ||
			skip "apt knows no linux-image-6.12.*-amd64-unsigned (apt-get update?)"
	fi
	kernel=$folder/$package
	[[ -d $kernel ]] || unpack_kernel "$package" "$kernel"
	work=$(mktemp -d "$folder/run.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	trap 'exit 143' TERM INT
}

# The libraries that programs need, and their loader; nothing for static ones and scripts.
libraries_of() {
	ldd "$@" 2>/dev/null | sed -n 's/^\t\(.* => \)\?\(\/[^ ]*\) (.*/\2/p' | sort -u || true
}

# vm_pack FOLDER FILE: the folder as an initramfs.
vm_pack() {
	(cd "$1" && find . | cpio --quiet -o -H newc -R 0:0) >"$2"
}

# What is slow is no fault: this machine may be slow, so stalls and hung tasks do not count.
faults() { # faults LOG...
	grep -hE 'BUG:|WARNING:|Oops|general protection|unable to handle|refcount_t|UBSAN|KASAN|list_(add|del) corruption|Kernel panic' \
		"$@" | grep -vE 'soft lockup|rcu.*stall|workqueue lockup'
}

# vm_boot INITRAMFS KERNEL-OPTIONS QEMU-OPTION...: prints what the guest printed and ends with its
# status, or with 1 when something went wrong.
vm_boot() {
	local status=0 left
	# One CPU: with several, the kernel now and then meets its own breakpoint while it patches its
	# code (int3 at boot), because software emulation runs each CPU on a thread of its own.
	timeout --kill-after=10 "$timeout" qemu-system-x86_64 -accel tcg -cpu max -m 1024 -smp 1 \
		-display none -monitor none -nic none -no-reboot \
		-serial "file:$work/console" -serial "file:$work/output" -serial "file:$work/dmesg" \
		-kernel "$kernel/vmlinuz" -initrd "$1" \
		-append "console=ttyS0 quiet panic=-1 $2" "${@:3}" 2>"$work/qemu" 9>&- || status=$?
	touch "$work"/{console,output,dmesg}
	cat "$work/console" "$work/dmesg" >"$folder/kernel.log"
	sed '/^vm-status /d' "$work/output"
	[[ $status != 124 && $status != 137 ]] ||
		fail "not finished after $timeout s: $(tail -n 5 "$work/console")"
	[[ $status == 0 ]] || fail "qemu: $(<"$work/qemu")"
	left=$(faults "$work/console" "$work/dmesg" || true)
	[[ ! $left ]] || fail "one of ours left a fault in the kernel's log ($folder/kernel.log):"$'\n'"$left"
	status=$(sed -n 's/^vm-status //p' "$work/output")
	[[ $status ]] || fail "the guest ended early: $(tail -n 5 "$work/console")"
	exit "$status"
}
