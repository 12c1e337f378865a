#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# In the guest: which process may attach to which under each kernel.yama.ptrace_scope, and what gpreempt
# says.
# The driver and Yama are real; the GPU, and the queue that a shell has on it, only stand in sysfs's
# place: whoever gets past Yama comes to the driver, which says that the shell has no ROCm runtime.
scope_file=/proc/sys/kernel/yama/ptrace_scope
sysfs=/tmp/kfd
export GPREEMPT_KFD_SYSFS=$sysfs
failures=0

fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
}

make_gpu() {
	mkdir -p $sysfs/topology/nodes/0
	echo 4711 >$sysfs/topology/nodes/0/gpu_id
	echo aldebaran >$sysfs/topology/nodes/0/name
	# 0x20008000: what a chip that can suspend for a debugger has.
	printf '%s\n' 'simd_count 416' 'simd_per_cu 4' 'gfx_target_version 90010' \
		'capability 536903680' >$sysfs/topology/nodes/0/properties
}

# A process of user `nobody`, with the driver open and, in our sysfs, a queue. Sets $target.
start_target() {
	su -s /bin/sh nobody -c 'exec 3<>/dev/kfd; echo $$ >/tmp/target; while :; do sleep 1; done' &
	until [ -s /tmp/target ]; do
		sleep 0.1
	done
	target=$(cat /tmp/target)
	mkdir -p "$sysfs/proc/$target/queues/0"
	echo 4711 >"$sysfs/proc/$target/queues/0/gpuid"
	echo 4096 >"$sysfs/proc/$target/queues/0/size"
	echo 0 >"$sysfs/proc/$target/queues/0/type"
}

# says USER CODE PATTERN COMMAND...: as that user it ends with the code, and the pattern (of case)
# fits all that it says on standard error, one line.
says() {
	user=$1 code=$2 pattern=$3
	shift 3
	su -s /bin/sh "$user" -c "GPREEMPT_UNDO=/tmp/undo-$user $*" >/tmp/out 2>/tmp/err
	status=$?
	said=$(cat /tmp/err)
	echo "ptrace_scope $(cat $scope_file), $user: $* = $status: $said"
	[ $status = "$code" ] || fail "exit $status instead of $code"
	# shellcheck disable=SC2254
	case $said in
	$pattern) ;;
	*) fail "not '$pattern'" ;;
	esac
	[ "$(wc -l </tmp/err)" = 1 ] || fail 'not one sentence'
}

# doctor_says USER PATTERN: of rights, with the advice.
doctor_says() {
	su -s /bin/sh "$1" -c 'gpreempt doctor' >/tmp/out 2>&1
	line=$(grep -A 1 rights /tmp/out)
	echo "ptrace_scope $(cat $scope_file), $1: doctor: $line"
	# shellcheck disable=SC2254
	case $line in
	$2) ;;
	*) fail "doctor: not '$2' in $(cat /tmp/out)" ;;
	esac
}

[ -e $scope_file ] || {
	echo 'this kernel has no Yama'
	exit 77
}
mkdir -p /run
echo nobody:x:65534:65534:nobody:/:/bin/sh >>/etc/passwd
make_gpu
start_target
no_runtime="gpreempt: process $target cannot be suspended: its runtime has not registered with the driver*"

# Nothing stands in the way: the rest is not about something else.
echo 0 >$scope_file
says nobody 1 "$no_runtime" "gpreempt suspend $target --for 1s"
says root 1 "$no_runtime" "gpreempt suspend $target --for 1s"
doctor_says nobody '*may attach to processes of this user only*'

for scope in 1 2; do
	echo $scope >$scope_file
	yama="Yama (kernel.yama.ptrace_scope = $scope) forbids attaching to process $target; run as root"
	says nobody 3 "gpreempt: $yama" "gpreempt suspend $target --for 1s"
	says nobody 3 "gpreempt: $yama" "gpreempt bench $target -n 2"
	says nobody 3 "gpreempt: cannot list the queues of process $target: $yama" "gpreempt queues $target"
	says root 1 "$no_runtime" "gpreempt suspend $target --for 1s"
	doctor_says nobody "*missing*Yama (ptrace_scope $scope) forbids attaching to other processes*run as root*"
	doctor_says root '*ok*to attach to processes of all users*'
done

# No process may attach until the next boot, not even root's.
echo 3 >$scope_file
yama="gpreempt: Yama (kernel.yama.ptrace_scope = 3) forbids attaching to process $target, even for root; set a lower value and reboot"
for user in nobody root; do
	says "$user" 3 "$yama" "gpreempt suspend $target --for 1s"
	doctor_says "$user" '*missing*Yama (ptrace_scope 3) forbids all users to attach*boot with kernel.yama.ptrace_scope below 3*'
done

kill "$target"
[ $failures = 0 ] || exit 1
echo 'all checks passed'
