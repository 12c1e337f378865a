#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real Prometheus server scrapes the daemon: promtool accepts page, alerts and their tests, every
# query of the dashboard returns data, and when the daemon is gone that is seen.
set -u
for tool in prometheus promtool jq python3; do
	[[ $(type -P "$tool") ]] || {
		echo "$tool is not there"
		exit 77
	}
done
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"

# ---- files that need nobody to run -------------------------------------------------------------

check() { # NAME COMMAND...
	local name=$1
	shift
	"$@" >"$work/$name" 2>&1 || fail "$name: $(<"$work/$name")"
}

check rules promtool check rules "$SRC/prometheus/gpreempt.rules.yml"
check alerts promtool test rules "$SRC/tests/daemon/alerts.yml"
# Each alert says where to read on, and there it is.
mapfile -t alerts < <(sed -n 's/^ *- alert: //p' "$SRC/prometheus/gpreempt.rules.yml")
((${#alerts[@]} >= 6)) || fail "too few alerts: ${alerts[*]}"
for alert in "${alerts[@]}"; do
	grep -q "runbook: docs/operations.md#${alert,,}$" "$SRC/prometheus/gpreempt.rules.yml" ||
		fail "$alert has no runbook"
	grep -q "^#* $alert$" "$SRC/docs/operations.md" || fail "docs/operations.md lacks $alert"
done

# ---- the daemon and Prometheus -----------------------------------------------------------------

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

fetch() { # PORT PATH: what stands there, without the head
	exec 3<>"/dev/tcp/127.0.0.1/$1" || return
	printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
	sed '1,/^\r$/d' <&3
	exec 3>&-
} 2>>"$work/fetch"

start_simgpu --devices 2 --activity exact
port=$(free_port)
cat >"$work/config.yaml" <<END
policy: priority
metrics:
  listen: 127.0.0.1:$port
  tasks: true
memory_limit: 1GiB
END
start_daemon --config "$work/config.yaml"

# Two that want the device at all times wait for each other, in each class; a third has too much
# memory.
for load in lc1 lc2 be1 be2; do
	start_simload $load --device "$([[ $load == lc* ]]; echo $?)" --closed --kernel 3ms --memory 100
	"$GPREEMPT" set "$LOAD" --class "${load%?}" >/dev/null || fail "cannot set $load"
done
start_simload large --device 1 --every 20ms --kernel 1ms --memory 2000
"$GPREEMPT" set "$LOAD" --class lc >/dev/null || fail 'cannot set large'

server=$(free_port)
cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s}
rule_files: ['$SRC/prometheus/gpreempt.rules.yml']
scrape_configs:
  - job_name: gpreemptd
    static_configs: [{targets: ['127.0.0.1:$port']}]
END
check config promtool check config "$work/prometheus.yml"
in_background prometheus prometheus --config.file="$work/prometheus.yml" \
	--storage.tsdb.path="$work/tsdb" --web.listen-address="127.0.0.1:$server" --log.level=warn
PROMETHEUS=$JOB

# ask QUERY: the values of its result.
ask() {
	fetch "$server" "/api/v1/query?query=$(jq -rn --arg q "$1" '$q | @uri')" |
		jq -r '.data.result[].value[1]'
}
# A number came, not only NaN.
has_data() {
	ask "$1" | grep -qv NaN
}
# within COMMAND...: waits up to 20 s for it, each try of which takes its time.
within() {
	local end=$((SECONDS + 20))

	until "$@"; do
		((SECONDS < end)) || return
		sleep 0.1
	done
}
is() { # VALUE QUERY
	[[ $(ask "$2") == "$1" ]]
}

within has_data 'count_over_time(up{job="gpreemptd"}[1m]) >= 10' ||
	fail "Prometheus does not scrape: $(tail -n 5 "$work/prometheus" "$work/fetch")"
is 1 'up{job="gpreemptd"}' || fail 'the scrape failed'

# ---- what it says ------------------------------------------------------------------------------

fetch "$port" /metrics >"$work/page"
check metrics promtool check metrics <"$work/page"
is 3 'sum(gpreempt_tasks{class="lc"})' || fail "lc tasks: $(ask 'sum(gpreempt_tasks{class="lc"})')"
is 2 'sum(gpreempt_tasks{class="be",device="1"})' || fail 'be tasks'
is 1 'gpreempt_task_info{name="large",class="lc"}' || fail 'no series for a task'
within is 1 gpreempt_processes_over_memory_limit || fail 'the memory limit does not show'
# Seconds are seconds: a device that is never idle is busy for a second in each.
within has_data 'rate(gpreempt_device_busy_seconds_total{device="0"}[10s]) > 0.5' ||
	fail "busy: $(ask 'rate(gpreempt_device_busy_seconds_total[10s])')"
[[ $(ask 'rate(gpreempt_device_busy_seconds_total{device="0"}[10s]) < 1.1') ]] || fail 'more than busy'

# ---- every query of the dashboard --------------------------------------------------------------

# shellcheck disable=SC2016 # these are variables of the dashboard
mapfile -t queries < <(jq -r '.panels[].targets[]?.expr' "$SRC/grafana/gpreempt.json" |
	sed 's/\$__rate_interval/10s/g; s/\$\(instance\|device\)/.*/g')
((${#queries[@]} >= 40)) || fail "only ${#queries[@]} queries in the dashboard"
for query in "${queries[@]}"; do
	[[ $query != *\$* ]] || fail "unknown variable: $query"
	within has_data "$query" || fail "no data: $query"
done
echo "${#queries[@]} queries of the dashboard were asked"
# What the alerts use is there, too.
mapfile -t names < <(grep -o 'gpreempt_[a-z_]*' "$SRC/prometheus/gpreempt.rules.yml" | sort -u)
for name in "${names[@]}"; do
	within has_data "$name" || fail "the alerts use $name, which is not there"
done
all_evaluated() {
	[[ $(fetch "$server" "/api/v1/rules" | jq -r '.data.groups[].rules[].health' |
		sort -u) == ok ]]
}
within all_evaluated || fail 'an alert cannot be evaluated'
! has_data 'ALERTS{alertname=~"GpreemptEjected|GpreemptDaemonDown|GpreemptDeviceStuck"}' ||
	fail "alerts: $(fetch "$server" "/api/v1/alerts")"

# ---- the end -----------------------------------------------------------------------------------

# Counters never fall while it runs.
[[ ! $(ask 'resets(gpreempt_ticks_total[5m]) > 0') ]] || fail 'a counter fell'
end_daemon
within is 0 'up{job="gpreemptd"}' || fail 'that the daemon is gone is not seen'
within has_data 'ALERTS{alertname="GpreemptDaemonDown"}' || fail 'nor told'
end_job TERM "$PROMETHEUS" || fail "prometheus ended with $?: $(tail -n 5 "$work/prometheus")"
finish
