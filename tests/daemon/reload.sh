# SPDX-License-Identifier: Apache-2.0
#
# The configuration is read again: rules apply to programs that run already, and a file with a
# mistake leaves everything as it was and says so to all who want to know.
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"

# configure CLASS PRIORITY [LINE]: what runs under the name `chosen` becomes that.
configure() {
	cat >"$work/config" <<-END
		policy: ${POLICY:-priority}
		rules:
		  - match: {comm: simload}
		    class: be
		  - match: {cmdline: "*chosen*"}
		    class: $1
		    priority: $2
		${3-}
	END
}

is() { # PID JQ
	"$GPREEMPT" ps --json | jq -e "any(.[]; .pid == $1 and ($2))" >/dev/null
}
becomes() { # PID JQ CLAIM
	until_true is "$1" "$2" || fail "$3: not so: $2 in $("$GPREEMPT" ps --json | jq -c .)"
}

# ask METHOD: the answer goes to $work/out.
ask() {
	try python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}\n" % sys.argv[2].encode())
print(s.makefile().readline())' "$SOCKET" "$1"
	[[ $out ]] || fail "no answer to $1: $err"
}

configure be 3
start_simgpu
start_daemon --config "$work/config"
start_simload chosen --every 10ms
chosen=$LOAD
start_simload told --every 10ms
told=$LOAD
becomes "$chosen" '.class == "be" and .priority == 3 and .rule == 2' 'a rule'
"$GPREEMPT" set "$told" --class be --priority 7 || fail 'set'
in_background events "$GPREEMPT" events --json
listens() {
	"$GPREEMPT" set "$told" --weight $((RANDOM % 1000 + 1)) >/dev/null && said events '"attr"'
}
until_true listens || fail 'nobody tells events'

# A good file.
configure lc 5
ask reload
holds '.result' 'a good file is taken'
becomes "$chosen" '.class == "lc" and .priority == 5' 'rules apply again to what runs'
becomes "$told" '.class == "be" and .priority == 7 and .set_by == "user"' 'people come before rules'
until_true said events '"text":"loaded"' || fail 'no event for a new configuration'

# Files with mistakes.
for mistake in 'polcy: fair' 'limits: {default: {class: best}}' '{' 'rules: []'; do
	: >"$work/daemon"
	configure be 1 "$mistake"
	ask reload
	holds '.error.message | test("config:[0-9]+")' "the answer says where: $mistake"
	until_true said daemon 'config.rejected.*the old configuration stays' || fail "nothing logged: $mistake"
	becomes "$chosen" '.class == "lc" and .priority == 5' "the old one stays: $mistake"
done
until_true said events '"text":"[^"]*config:[0-9]' || fail 'no event for a mistake'
rm "$work/config"
ask reload
holds '.error' 'a file that is gone is a mistake, too'
ask stats
holds ".result.daemon.config == \"$work/config\"" 'and the daemon still says which file it has'
becomes "$chosen" '.class == "lc"' 'and the old one stays'

# What holds only after a restart is said, key by key, and what is as it was is not.
restart_keys() {
	sed -n 's/.*config.restart key="\([^"]*\)".*/\1/p' "$work/daemon"
}
while IFS=/ read -r key line; do
	for text in "$line" "$line" ''; do
		: >"$work/daemon"
		configure lc 5 "$text"
		ask reload
		holds '.result' "a good file is taken: $text"
		until_true said daemon config.loaded || fail "not loaded: $text"
		[[ $(restart_keys) == "${text:+$key}" ]] ||
			fail "'$text' needs a restart for '$key', and the log says '$(restart_keys)'"
	done
done <<'END'
gpu/gpu: sim
devices: ignore/devices: [{match: nothing, ignore: true}]
scheduler/scheduler: {scan: 50ms}
scheduler/scheduler: {realtime: 1}
sockets/sockets: {hint: {mode: 0600}}
clients/clients: {rate: 10}
metrics: listen/metrics: {listen: "127.0.0.1:9"}
/devices: [{match: nothing, policy: fair}]
/memory_limit: 1GiB
END

# By signal, with another policy, and a rule less.
POLICY=fair configure be 2
kill -HUP "$DAEMON"
becomes "$chosen" '.class == "be" and .priority == 2' 'SIGHUP does the same'
policy_is() { [[ $("$GPREEMPT" policy) == *"$1"* ]]; }
until_true policy_is fair || fail "the new policy is not in force: $("$GPREEMPT" policy)"
echo 'rules: []' >"$work/config"
kill -HUP "$DAEMON"
becomes "$chosen" '.class == "unmanaged" and .set_by == "default"' 'without its rule it is left alone'
end_daemon
finish
