#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt run and set with a real daemon: what was said holds for the command and for what it starts
# (in_force.sh: from the first queue on), and can be changed while it runs.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
DEVICES=2
begin_daemon --policy priority

# What the command starts, too, through processes that have no queues themselves.
# shellcheck disable=SC2016
"$GPREEMPT" run --class be --weight 30 -- bash -c \
	'(bash -c "\"\$GPREEMPT\" simload --name child --processes 2 --for 60s; true"; true)' >"$work/children" &
jobs_started+=($!)
until_true eval "[[ \$(\"\$GPREEMPT\" ps --json | jq '[.[] | select(.name == \"child\" and .class == \"be\" and .weight == 30)] | length') == 2 ]]" ||
	fail "what a command started is not as it: $("$GPREEMPT" ps)"
while read -r pid; do
	jobs_started+=("$pid")
	kill "$pid"
done < <("$GPREEMPT" ps --json | jq '.[] | select(.name == "child").pid')

# On the GPU that was asked for.
in_background there "$GPREEMPT" run --class be --gpu 1 -- "$GPREEMPT" simload --name there --for 60s
is "$JOB" '.device == 1 and .class == "be"'
end_job TERM "$JOB"

# A program that runs already, of which nobody has said anything.
load job --kernel 5ms
is "$LOAD" '.class == "unmanaged" and .set_by == "default"'
expect 0 '' 'set' "$GPREEMPT" set "$LOAD" --class be --share 25 --gang trainers
[[ $out == "$LOAD (gpreempt): class be, priority 0, weight 100, share 25 %, gang trainers; in force on 1 device; policy priority does not use share" ]] ||
	fail "set said '$out'"
is "$LOAD" '.class == "be" and .share_permille == 250 and .gang == "trainers" and .set_by == "user"'
try "$GPREEMPT" set "$LOAD" --priority 7 --share none --gang none --json
holds '.attr == {"class": "be", "priority": 7, "weight": 100} and .tasks == 1' 'what is not said stays, none takes back'
holds '[.devices[] | {policy, in_force}] == [{policy: "priority", in_force: ["class", "priority", "gang"]}]' \
	'set --json lists the attributes that the policy uses'
is "$LOAD" '.priority == 7 and (has("gang") or has("share_permille") | not)'

# An attribute that the policy does not use is kept; it is not confirmed as in force.
try "$GPREEMPT" set "$LOAD" --share 60
[[ $out == *'share 60 %; kept without effect; policy priority does not use share' ]] || fail "set --share said '$out'"
try "$GPREEMPT" run --class be --share 60 -- true
exits 0 'gpreempt: policy priority does not use share; gpreempt policy lists the policies' 'run --share'
"$GPREEMPT" policy share >/dev/null || fail 'policy share'
try "$GPREEMPT" set "$LOAD" --share 60 --deadline 2ms
[[ $out == *'; in force on 1 device; policy share does not use priority, deadline' ]] || fail "under share, set said '$out'"
try "$GPREEMPT" set "$LOAD" --class lc --deadline none
[[ $out == *'; in force on 1 device; policy share does not use class lc, priority' ]] || fail "under share, set --class lc said '$out'"
try "$GPREEMPT" set "$LOAD" --class unmanaged
[[ $out == *'; in force on 1 device; an unmanaged process is left alone' ]] || fail "set --class unmanaged said '$out'"
try "$GPREEMPT" set "$LOAD" --share 30
[[ $out == *'; kept without effect; an unmanaged process is left alone' ]] || fail "set of an unmanaged process said '$out'"
"$GPREEMPT" set "$LOAD" --class be --share none --priority 0 >/dev/null || fail 'set --class be'
"$GPREEMPT" policy priority >/dev/null || fail 'policy priority'
try "$GPREEMPT" set "$LOAD" --class unmanaged
is "$LOAD" '.class == "unmanaged"'

# One that has no queues yet; one that is gone.
bash -c "until [[ -e $work/go ]]; do sleep 0.02; done; exec \"\$GPREEMPT\" simload --name late --for 60s" >"$work/late" &
late=$!
jobs_started+=("$late")
expect 0 '' 'set before the first queue' "$GPREEMPT" set "$late" --class lc
[[ $out == *'class lc'*'not seen on a GPU yet'* ]] || fail "set before the first queue said '$out'"
touch "$work/go"
is "$late" '.class == "lc" and .set_by == "user"'
end_job TERM "$late"
expect 4 "gpreempt: *$late*" 'set of a process that is gone' "$GPREEMPT" set "$late" --class be
finish
