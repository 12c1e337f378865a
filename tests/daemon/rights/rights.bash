# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For tests of who may do what: as daemon.bash, in folders that everybody can reach.
[[ $EUID == 0 ]] || {
	echo 'needs root, to be other users'
	exit 77
}
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"
chmod 755 "$work" "$GPREEMPT_RUN"

# as UID[+GROUP] COMMAND...: it runs as that user; sets JOB.
as() {
	local uid=${1%+*} groups=--clear-groups
	[[ $1 == *+* ]] && groups=--groups=${1#*+}
	shift
	in_background program setpriv --reuid "$uid" --regid "$uid" "$groups" "$@"
}
