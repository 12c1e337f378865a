#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt schedule on a simulated GPU in real time: requests wait less beside a job, the job loses
# none of its work, and everything is as it was afterwards. Times are those on the device, which the
# load of this machine does not change.
set -u
# shellcheck source=tests/cli/simgpu.bash
. "$SRC/tests/cli/simgpu.bash"

# serve NAME: a service, in the background. Its requests are two kernels with a pause between them,
# one after the other: however late it is woken, it has no backlog, which would be measured, too.
serve() {
	in_background "$1" "$GPREEMPT" simload --kernels 2 --ahead 1 "${service[@]}" --requests 100 --json
}
number() { # NAME KEY
	jq -r ".$2 | floor" "$work/$1"
}
# added NAME: by how much a request at the median is slower than alone, in us.
added() {
	echo $(($(number "$1" device_p50_us) - $(number alone device_p50_us)))
}
is_there() {
	[[ $(state_of "$1") ]]
}

try_model() { # MODEL; ${service[@]}
	local model=$1 name undisturbed

	start_simgpu --device "$model" --devices 2
	in_background undisturbed "$GPREEMPT" simload --device 1 --kernel 20ms --ahead 16 --requests 300 --json
	undisturbed=$JOB
	serve alone
	wait "$JOB" || fail "$model: alone: $?"
	start_simload train --kernel 20ms --ahead 16 --requests 300
	serve shared
	wait "$JOB" || fail "$model: shared: $?"

	serve scheduled
	until_true is_there "$JOB" || fail "$model: the service has no context"
	service_pid=$JOB
	kill -STOP "$service_pid" # until it is scheduled
	in_background schedule "$GPREEMPT" schedule --lc "$service_pid" --be "$LOAD"
	until_true said schedule '^ready$' || fail "$model: never ready: $(<"$work/schedule")"
	end_job CONT "$service_pid" || fail "$model: scheduled: $?"
	is_there "$LOAD" || fail "$model: the job ended too soon: this tests nothing"
	end_job TERM "$JOB" || fail "$model: schedule ends with $?: $(<"$work/schedule")"
	said schedule 'policy priority.* 0 failures' ||
		fail "$model: schedule says $(<"$work/schedule")"
	until_true is_loose "$LOAD" || fail "$model: the job is still held"

	for name in alone shared scheduled; do
		[[ $(number $name requests) == 100 && $(number $name wrong) == 0 ]] ||
			fail "$model: $name: $(<"$work/$name")"
	done
	# Most of what the job adds to a request is gone again.
	(($(added shared) > 100)) || fail "$model: the job does not disturb: this tests nothing"
	(($(added scheduled) * 2 < $(added shared))) ||
		fail "$model: added $(added scheduled) us, and without a policy $(added shared)"
	echo "$model: added at the median: without a policy $(added shared) us, with it $(added scheduled)"

	# The job's work, preempted all the time, comes to the same as work that nobody disturbed.
	wait "$LOAD" || fail "$model: the job lost work: $(<"$work/train")"
	wait "$undisturbed" || fail "$model: undisturbed: $(<"$work/undisturbed")"
	grep -q "^300 requests.*checksum $(jq -r .checksum "$work/undisturbed")$" "$work/train" ||
		fail "$model: another checksum: $(<"$work/train") and $(<"$work/undisturbed")"
	end_job TERM "$GPU" || fail "$model: gpreempt-simgpu ends with $?"
}

service=(--kernel 200us --gap 4ms)
try_model h200
service=(--kernel 3ms --gap 6ms) # holding takes longer there: not for the shortest
try_model mi300x
finish
