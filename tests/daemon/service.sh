#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# As a service: readiness, watchdog, reload and end are told to the service manager, sockets may come
# from it, and the threads of the devices get the priority and the core that the configuration asks for.
set -u
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"
start_simgpu --devices 2
answers() {
	"$GPREEMPT" stats --for 0s --json >"$work/answer" 2>/dev/null && jq -e '.devices | length == 2' "$work/answer" >/dev/null
}

# ---- what it tells ----
in_background manager python3 "$SRC/tests/daemon/notify.py" "$work/notify" "$work/told"
until_true test -S "$work/notify" || fail 'no service manager'
told() {
	grep -qs "$1" "$work/told"
}
cat >"$work/config.yaml" <<'END'
scheduler:
  realtime: 7
  core: 0
END
chmod 600 "$work/config.yaml"
NOTIFY_SOCKET=$work/notify start_daemon --config "$work/config.yaml"
until_true told '^READY=1' || fail "not ready: $(<"$work/told")"
told '^STATUS=Scheduling 2 devices' || fail "no status: $(<"$work/told")"
until_true told '^WATCHDOG=1' || fail 'the watchdog is not fed'
kill -HUP "$DAEMON"
until_true told '^RELOADING=1' || fail 'a reload is not told'

# ---- threads ----
threads=0
for task in "/proc/$DAEMON/task"/*; do
	[[ $(<"$task/comm") == device-* ]] || continue
	threads=$((threads + 1))
	# Field 40 and 41 of stat: real-time priority and policy (1 = FIFO).
	read -r priority policy < <(sed 's/.*) //' "$task/stat" | cut -d' ' -f38,39)
	if [[ $EUID == 0 ]] && ! said daemon thread.realtime; then
		[[ $priority == 7 && $policy == 1 ]] || fail "priority $priority, policy $policy"
	fi
	[[ $(awk '/^Cpus_allowed_list/ { print $2 }' "$task/status") == 0 ]] || fail 'it may run on other cores'
done
[[ $threads == 2 ]] || fail "$threads threads for 2 devices"
end_daemon
until_true told '^STOPPING=1' || fail 'its end is not told'

# ---- sockets from the service manager ----
type -P systemd-socket-activate >/dev/null || {
	echo 'systemd-socket-activate is not here: sockets from outside are not tried'
	finish
	exit
}
rm -f "$SOCKET" "$GPREEMPT_RUN/hint.sock"
in_background daemon systemd-socket-activate --listen="$SOCKET" --listen="$GPREEMPT_RUN/hint.sock" \
	--fdname=gpreemptd.socket:gpreemptd-hint.socket -E GPREEMPT_RUN -E GPREEMPT_GPU \
	"$GPREEMPTD" --gpu sim
DAEMON=$JOB
until_true test -S "$SOCKET" || fail 'nobody listens'
said daemon 'info daemon.ready' && fail 'it runs before anybody asks'
until_true answers || fail "the first client is not answered: $(<"$work/daemon")"
[[ -S $GPREEMPT_RUN/hint.sock ]] || fail 'the hint socket is gone'
end_daemon
[[ -S $SOCKET ]] || fail 'it removed a socket that is not its own'
finish
