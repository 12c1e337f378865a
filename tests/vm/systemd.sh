#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# systemd.sh BUILD FOLDER: what `make install` installs, under a real systemd: the one of this
# machine is copied into a virtual one and boots there. The GPU is a simulated one. What is claimed
# stands in systemd/*.sh, which run in the guest.
#
# Exits 77 where this cannot be tried. FOLDER keeps the kernel for the next time, and of the last run
# journal.log and kernel.log. VM_PARTS="deaths order" runs some of the parts only.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
VM_TIMEOUT=${VM_TIMEOUT:-600} # it has a hundred seconds of work for a core
# shellcheck source=tests/vm/vm.bash
. "$here/vm.bash"
# shellcheck source=tests/vm/systemd/root.bash
. "$here/systemd/root.bash"

[[ $# == 2 ]] || { sed -n 's/^# \(systemd.sh\)/usage: \1/p' "$0" >&2; exit 2; }
[[ -x $1/gpreemptd ]] || skip 'gpreemptd is not built'
vm_begin "$2"
root=$work/root
make_root "$root"
install_gpreempt "$root" "$1"
install_tests "$root" "$here" "$1"
vm_pack "$root" "$work/initramfs"
rm -r "$root"

trap 'cp "$work/journal" "$folder/journal.log" 2>/dev/null; rm -rf "$work"' EXIT
# A guest whose clock goes by what it has done, and jumps when it has nothing to do: however busy this
# machine is, seconds are long enough there, and to wait costs nothing.
vm_boot "$work/initramfs" "rdinit=/lib/systemd/systemd systemd.show_status=no systemd.crash_reboot=yes" \
	-serial "file:$work/journal" -icount shift=2,sleep=off
