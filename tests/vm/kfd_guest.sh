#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# In the guest: all cases, then the case that needs the driver loaded with another parameter.
status=0
kfd-cases --sysfs /sys/class/kfd/kfd || status=1

amdgpu=
for module in $MODULES; do
	amdgpu=$module
done
rmmod amdgpu || status=1
insmod "$amdgpu" sched_policy=2 || status=1
kfd-cases --no-hws --only without_hws || status=1
exit $status
