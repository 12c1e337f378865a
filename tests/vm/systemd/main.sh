#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In the guest: the parts of the test, one after the other.
stty -F /dev/ttyS1 raw
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root
status=0
{
	for part in $(</tests/parts); do
		SECONDS=0
		bash "/tests/$part.sh" 2>&1 || {
			status=1
			systemctl --no-pager --lines=5 status gpreemptd gpreempt-keeper
		}
		echo "$part: $SECONDS s"
	done
	echo "vm-status $status"
} 2>&1 | cat >/dev/ttyS1
