#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes of a local user without any right stay in execve, so that the kernel answers no question
# about them (tests/daemon/stuck_exec.c). Commands, the daemon and the keeper go on meanwhile.
# Other programs of the machine wait as long as an attack lasts, so each lasts 3 s at most, and no
# other test runs.
set -u
[[ ${GPREEMPT_SANITIZE-} != thread ]] || {
	echo 'skipped: too slow with a sanitizer: the attacks last 3 s'
	exit 77
}
[[ -x ${GPREEMPTD-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
user=59001 # a uid without an account
readonly processes=6 attack_ms=3000
begin_emu --gpus 1
export GPREEMPT_RUN=$work/run GPREEMPT_SOCKET=$work/run/gpreemptd.sock GPREEMPT_KFD=$work/no-kfd
mkdir -m 0755 "$GPREEMPT_RUN"
chmod 755 "$work" "$EMU_TMP"
printf 'policy: none\nrules:\n  - {match: {exe: "/no/*"}, class: be}\n' >"$work/config"
cp "$GPREEMPT" "$work/gpreempt"
mkfifo "$work/order"

start_daemon() { # start_daemon NAME: of its log
	in_background "$1" "$GPREEMPTD" --gpu nvidia --config "$work/config"
	DAEMON=$JOB
	until_true said "$1" '^info daemon.ready' || fail "no daemon: $(<"$work/$1")"
}

# prepare [CONTROL]: sets ATTACK and ATTACKERS. The processes run, and have the control file open.
prepare() {
	: >"$work/attack"
	"$BUILD/tests/daemon/daemon-stuck-exec" "$user" "$attack_ms" "$processes" "$@" \
		<"$work/order" >"$work/attack" 2>&1 &
	ATTACK=$!
	jobs_started+=("$ATTACK")
	exec {order}>"$work/order"
	until_true eval "[[ -s $work/attack ]]" || fail 'the attack does not start'
	if said attack '^cannot'; then
		cat "$work/attack"
		exit 77
	fi
	read -r -a ATTACKERS <"$work/attack"
}
attack() {
	echo >&"$order"
	until_true said attack '^stuck' || fail 'the attack has no effect'
}
lasts() {
	[[ -d /proc/$ATTACK && $(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$ATTACK/status") != Z ]]
}
end_attack() { # CLAIM
	lasts || fail "$1: took longer than the attack"
	exec {order}>&-
	wait "$ATTACK"
}

# The attack is real: getfd on the process waits until the attack has ended.
prepare "$GPREEMPT_NVIDIACTL"
attack
timeout --signal KILL 0.5 readlink "/proc/${ATTACKERS[0]}/fd/0" >/dev/null 2>&1
old=$?
exec {order}>&-
wait "$ATTACK"
((old == 137)) || echo 'note: this kernel answers for /proc; only pidfd_getfd waits'

# The job belongs to another user: root's processes are examined without a helper.
cat >"$work/load" <<END
#!/bin/bash
exec setpriv --reuid 59003 --regid 59003 --clear-groups "$RM_LOAD" "\$@"
END
chmod 755 "$work/load"
RM_LOAD=$work/load
start_load --contexts 1
load=$LOAD
[[ $(stat -c %u "/proc/$load") == 59003 ]] || fail 'the job does not belong to another user'
start_daemon daemon
in_background keeper "$BUILD/gpreempt-keeper" --timeout 5

for what in 'suspend resume' 'ps queues' 'doctor'; do
	prepare "$GPREEMPT_NVIDIACTL"
	sleep 0.7 # the daemon finds them
	attack
	for verb in $what; do
		case $verb in
		ps | doctor) try "$GPREEMPT" "$verb" ;;
		*) try "$GPREEMPT" "$verb" "$load" ;;
		esac
		((status == 0)) || fail "$verb: $status $err"
	done
	end_attack "$what"
done
is_running "$load" || fail 'not released'

# A request that names a process of the attacker is answered with the reason, and others go on.
prepare
attack
in_background named python3 "$SRC/tests/daemon/name_targets.py" "$GPREEMPT_SOCKET" "${ATTACKERS[@]}"
before=${EPOCHREALTIME/./}
try "$GPREEMPT" ps
((status == 0)) || fail "ps beside requests that name the attacker: $status $err"
((${EPOCHREALTIME/./} - before < 1500000)) || fail "ps took $((${EPOCHREALTIME/./} - before)) us"
try "$GPREEMPT" set "${ATTACKERS[0]}" --class be
if ((old == 137)); then
	wait "$JOB" || fail "the requests were answered: $(<"$work/named")"
	exits 1 '*does not answer*execve*' 'set of a process in execve'
fi
end_attack 'set'

# A changed configuration makes the daemon look at all described processes again. The children that
# read process info do not wait for a process in execve. With another user: the first one's processes
# are left out for some seconds.
user=59002
prepare
for pid in "${ATTACKERS[@]}"; do # the user describes their own processes: rules limit that
	try setpriv --reuid "$user" --regid "$user" --clear-groups "$work/gpreempt" set "$pid" --class be
	((status == 0)) || fail "set of one's own process: $status $err"
done
attack
kill -HUP "$DAEMON"
sleep 1.5
try "$GPREEMPT" ps
((status == 0)) || fail "ps after SIGHUP: $status $err"
said daemon procinfo.reader-abandoned && fail "a reader waited: $(<"$work/daemon")"
end_attack 'SIGHUP'

# resume --all, with and without the daemon.
for how in '' --no-daemon; do
	try "$GPREEMPT" suspend "$load"
	is_held "$load" || fail "not held: $err"
	prepare "$GPREEMPT_NVIDIACTL"
	[[ $how ]] && kill_job "$DAEMON"
	attack
	# shellcheck disable=SC2086
	try "$GPREEMPT" resume --all $how
	is_running "$load" || fail "resume --all $how: $status $err"
	end_attack "resume --all $how"
done

# The keeper releases what a killed daemon held.
start_daemon second
try "$GPREEMPT" suspend "$load"
is_held "$load" || fail "not held: $err"
prepare "$GPREEMPT_NVIDIACTL"
sleep 0.7
attack
kill -KILL "$DAEMON"
until_true is_running "$load" || fail 'the keeper does not release it'
end_attack 'the keeper'
wait "$DAEMON" 2>/dev/null
start_daemon third
end_job TERM "$DAEMON" || fail "the third daemon ended with $?: $(<"$work/third")"
ends_right "$load"
((old != 137)) || said daemon 'process.silent.*account=59001' || fail "the daemon said: $(<"$work/daemon")"
finish
