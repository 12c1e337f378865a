#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The NVIDIA back end on a real GPU, with an unmodified CUDA program (victim.cu). Needs root and
# takes about two minutes. Exit status 77 where it cannot be tried. Touches only processes that it
# starts itself.
#     tests/hw/nvidia.sh [CHECK...]     all checks, or the checks named: see the end
# GPREEMPT and VICTIM are paths of ready-built programs. Without GPREEMPT the script builds gpreempt
# with CMake and Ninja; without VICTIM it builds victim.cu with nvcc.
# shellcheck disable=SC2317 # the checks are called by name
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

skip() {
	echo "skipped: $*"
	exit 77
}

# ---- what it needs ------------------------------------------------------------------------------
[[ -e /dev/nvidiactl ]] || skip 'no NVIDIA GPU here (/dev/nvidiactl is not there)'
[[ $EUID == 0 ]] || skip 'needs root, to attach to other processes'
work=$(mktemp -d)
export GPREEMPT_UNDO=$work/undo
started=()
finish() {
	for pid in "${started[@]}"; do
		kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$work"
}
trap finish EXIT

if [[ -z ${GPREEMPT-} ]]; then
	if ! { cmake -G Ninja -S "$root" -B "$work/build" -DGPREEMPT_TESTS=OFF -DGPREEMPT_DAEMON=OFF &&
		cmake --build "$work/build" --target gpreempt; } >"$work/log" 2>&1; then
		cat "$work/log"
		exit 1
	fi
	GPREEMPT=$work/build/gpreempt
fi
if [[ ! -x $GPREEMPT ]]; then
	echo "GPREEMPT is $GPREEMPT, which cannot be run: set it to the path of a gpreempt"
	exit 1
fi
if [[ -z ${VICTIM-} ]]; then
	nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc) || skip 'no nvcc here'
	"$nvcc" -O2 -arch=native -o "$work/victim" "$here/victim.cu" || exit 1
	VICTIM=$work/victim
fi
"$GPREEMPT" doctor >"$work/doctor" || {
	cat "$work/doctor"
	skip 'no GPU is ready'
}

failed=0
verdict() { # ok|FAILED TEXT...
	echo "$*"
	[[ $1 == ok ]] || failed=1
}
# check COMMAND-STATUS TEXT
check() {
	if (($1)); then
		verdict FAILED "$2"
	else
		verdict ok "$2"
	fi
}

# start_victim ARGS...: sets VICTIM_PID when it is ready.
start_victim() {
	"$VICTIM" "$@" >"$work/victim.out" &
	VICTIM_PID=$!
	started+=("$VICTIM_PID")
	for _ in {1..600}; do
		grep -q ready "$work/victim.out" && return
		sleep 0.05
	done
	echo 'the CUDA program does not start'
	exit 1
}
victim_done() {
	awk '/^at/ { n = $4 } END { print n + 0 }' "$work/victim.out"
}
# rate SECONDS: what it does in that time, a second, from its own log.
rate() {
	local lines
	lines=$(wc -l <"$work/victim.out")
	sleep "$1"
	tail -n "+$lines" "$work/victim.out" |
		awk '/^at/ { if (!t) { t = $2; n = $4 } a = $2; b = $4 } END { print (a > t ? (b - n) / (a - t) : 0) }'
}
moves() {
	local before
	before=$(victim_done)
	for _ in {1..40}; do
		sleep 0.05
		(($(victim_done) > before)) && return 0
	done
	return 1
}
# end_victim: its results were right.
end_victim() {
	kill -TERM "$VICTIM_PID"
	wait "$VICTIM_PID" && grep -q 'wrong 0$' "$work/victim.out"
}
used_mib() {
	nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -1
}
number() { # FILE KEYS...: a number in JSON, by the order of keys that lead to it
	local file=$1
	shift
	python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
for k in sys.argv[2:]:
    v = v and v[k]
print("unknown" if v is None else v)' "$file" "$@"
}

# ---- checks -------------------------------------------------------------------------------------
attach() { # finding a running process takes at most 3 ms (p50), 0.7 of them to read its channels back
	start_victim work
	"$GPREEMPT" bench "$VICTIM_PID" --count 50 --json >"$work/bench"
	local find hold release
	find=$(number "$work/bench" find_us p50)
	hold="$(number "$work/bench" hold answer_us p50)/$(number "$work/bench" hold effect_us p50)"
	release="$(number "$work/bench" release answer_us p50)/$(number "$work/bench" release effect_us p50)"
	awk "BEGIN { exit !($find <= 3000) }"
	check $? "attach p50 $find us (limit 3000); hold $hold us to answer/effect, release $release us"
	if "$GPREEMPT" doctor | grep -q 'measured from the firmware'; then
		[[ $hold/$release != *unknown* ]]
		check $? 'where switches are recorded, the effect is seen'
	fi
	end_victim
	check $? 'results right afterwards'
}

cycles() { # 1,000 holds and releases: all succeed, results right, throughput as before
	local before after done_
	start_victim work
	before=$(rate 2)
	"$GPREEMPT" bench "$VICTIM_PID" --count 1000 --hold-ms 1 --json >"$work/bench"
	done_="$(number "$work/bench" hold "done") $(number "$work/bench" release "done")"
	[[ $done_ == '1000 1000' ]]
	check $? "1000 cycles: done $done_; hold p99 $(number "$work/bench" hold answer_us p99) us, release p99 $(number "$work/bench" release answer_us p99) us"
	after=$(rate 2)
	awk "BEGIN { exit !($after > 0.97 * $before) }"
	check $? "throughput before $before, after $after kernels/s"
	end_victim
	check $? "checksums: $(tail -1 "$work/victim.out")"
}

memory() { # kill -9 of a held process with 10 GB: its memory is free within 1 s
	local empty full began took now
	empty=$(used_mib)
	start_victim work 10
	"$GPREEMPT" suspend "$VICTIM_PID" >"$work/suspend" &
	local holder=$!
	started+=("$holder")
	for _ in {1..100}; do
		grep -q held "$work/suspend" && break
		sleep 0.05
	done
	full=$(used_mib)
	kill -9 "$VICTIM_PID"
	disown "$VICTIM_PID"
	began=$(date +%s%N)
	while now=$(used_mib) && ((now > empty + 500)) && (($(date +%s%N) - began < 5000000000)); do
		sleep 0.02
	done
	took=$((($(date +%s%N) - began) / 1000000))
	((now <= empty + 500 && took <= 1000 && full > empty + 9000))
	check $? "memory in use: $empty MiB, held with 10 GB $full MiB, $took ms after kill -9 $now MiB"
	wait "$holder" 2>/dev/null
}

memory_attached() { # the same with a scheduler that continues to run
	local empty took now began scheduler
	empty=$(used_mib)
	start_victim work
	local other=$VICTIM_PID
	start_victim work 10
	"$GPREEMPT" schedule --be "$other" --be "$VICTIM_PID" >"$work/schedule" 2>&1 &
	scheduler=$!
	started+=("$scheduler")
	sleep 1
	kill -9 "$VICTIM_PID"
	disown "$VICTIM_PID"
	began=$(date +%s%N)
	while now=$(used_mib) && ((now > empty + 1500)) && (($(date +%s%N) - began < 5000000000)); do
		sleep 0.02
	done
	took=$((($(date +%s%N) - began) / 1000000))
	kill -0 "$scheduler" && ((now <= empty + 1500 && took <= 1000))
	check $? "beside a living scheduler: $took ms after kill -9 $now MiB ($empty MiB before)"
	kill -TERM "$scheduler"
	wait "$scheduler"
	check $? 'the scheduler ends well'
	kill -9 "$other"
	wait "$other" 2>/dev/null
}

killed() { # kill -9 of the tool at any moment, then resume --all: everything runs
	local bad=0 i tool
	start_victim work
	for i in {1..15}; do
		if ((i % 2)); then
			"$GPREEMPT" bench "$VICTIM_PID" --count 1000 --hold-ms 1 >/dev/null 2>&1 &
		else
			"$GPREEMPT" suspend "$VICTIM_PID" >/dev/null 2>&1 &
		fi
		tool=$!
		started+=("$tool")
		sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
		kill -9 "$tool"
		wait "$tool" 2>/dev/null
		"$GPREEMPT" resume --all >"$work/resume" 2>&1 || bad=$((bad + 1))
		moves || bad=$((bad + 1))
	done
	((!bad))
	check $? "killed at 15 moments, resume --all: $bad times something was left"
	end_victim
	check $? "checksums: $(tail -1 "$work/victim.out")"
}

launches() { # an attached process launches as fast as before, within 1 %
	local i tool on=() off=()
	start_victim launch
	sleep 1
	for i in {1..30}; do
		off+=("$(rate 0.4)")
		"$GPREEMPT" schedule --be "$VICTIM_PID" --policy none >"$work/schedule" &
		tool=$!
		started+=("$tool")
		for _ in {1..100}; do
			grep -q ready "$work/schedule" && break
			sleep 0.02
		done
		on+=("$(rate 0.4)")
		kill -TERM "$tool"
		wait "$tool"
	done
	off+=("$(rate 0.4)")
	# Each window with it is compared with the two beside it without, so that drift cancels.
	python3 -c 'import sys
n = (len(sys.argv) - 2) // 2
off, on = [float(x) for x in sys.argv[1:n + 2]], [float(x) for x in sys.argv[n + 2:]]
ratio = sorted(on[i] / ((off[i] + off[i + 1]) / 2) for i in range(n))
middle = (ratio[(n - 1) // 2] + ratio[n // 2]) / 2
print("%.4f (middle half of %d windows: %.3f to %.3f)" % (middle, n, ratio[n // 4], ratio[-1 - n // 4]))
sys.exit(not 0.99 <= middle)' "${off[@]}" "${on[@]}" >"$work/ratio"
	check $? "launches a second, attached against not: $(<"$work/ratio")"
	end_victim
}

arguments() { # one sentence and the documented exit status
	local out status
	try() { # STATUS ARGS...
		local want=$1
		shift
		out=$("$GPREEMPT" "$@" 2>&1 >/dev/null)
		status=$?
		[[ $status == "$want" && $(wc -l <<<"$out") == 1 ]]
		check $? "gpreempt $*: $status, $out"
	}
	true &
	local ended=$!
	wait "$ended"
	try 4 suspend "$ended"
	try 4 queues $$
	if readlink /proc/1/exe >/dev/null; then # a security module can forbid that: exit status 3
		try 4 bench 1
	else
		try 3 bench 1
	fi
}

held_twice() { # channels that another scheduler has disabled can be held, too
	local first out
	start_victim work
	"$GPREEMPT" suspend "$VICTIM_PID" --for 4s --no-daemon >"$work/first" &
	first=$!
	started+=("$first")
	sleep 1
	out=$(GPREEMPT_UNDO=$work/undo2 "$GPREEMPT" suspend "$VICTIM_PID" --for 1s --no-daemon 2>&1)
	check $? "a process that is held can be held once more: ${out//$'\n'/; }"
	wait "$first"
	check $? "the first hold ends well: $(tail -1 "$work/first")"
	moves
	check $? 'it runs afterwards'
	end_victim
	check $? 'results right afterwards'
}

slices() { # schedule restores the slices
	local lc be out
	start_victim work
	lc=$VICTIM_PID
	start_victim work
	be=$VICTIM_PID
	"$GPREEMPT" schedule --lc "$lc" --be "$be" --for 2s >"$work/schedule" 2>&1
	check $? 'schedule two processes for 2 s'
	for pid in "$lc" "$be"; do
		out=$("$GPREEMPT" queues "$pid" --json)
		python3 -c 'import json, sys
s = [q.get("slice_us") for q in json.loads(sys.argv[1])["queues"] if not q["copies"]]
print("slices", s)
sys.exit(not s or any(x != 2048 for x in s))' "$out"
		check $? "the slices of $pid are CUDA's 2,048 us again"
	done
	kill "$lc" "$be"
}

if (($#)); then
	checks=("$@")
else
	checks=(attach cycles memory memory_attached killed held_twice slices launches arguments)
fi
for name in "${checks[@]}"; do
	"$name"
done
exit $failed
