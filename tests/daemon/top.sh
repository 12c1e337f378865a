#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt top in a terminal, as people use it: keys, sizes, and a daemon that hangs, goes and comes.
# What keys do is asked of the daemon, not of the screen.
set -u
# shellcheck source=tests/daemon/terminal.bash
. "$SRC/tests/daemon/terminal.bash"
begin_top

# ---- 80 x 24 ------------------------------------------------------------------------------------

open_terminal 80 24
keys "$GPREEMPT top" Enter
shows '^DEV NAME +POLICY +BUSY LAST MINUTE +PRE/S +INV/S$' 'the heads of devices'
shows '^  0 simulated H200 #0 +priority +[0-9]+% .*[▁▂▃▄▅▆▇█] +[0-9.]+ +[0-9.]+$' 'the device, busy'
shows '^ *PID USER +CLASS +PRI STATE +GPU\* +P50 +P99 PRE/S NAME$' 'the heads of tasks'
shows "^ *$train [a-z?0-9]+ +unmanaged +0 . (running|waiting) +[█▏▎▍▌▋▊▉·]+ +[0-9]+% .* train\$" 'a task with its share'
shows '[0-9.]+(us|ms) +[0-9.]+(us|ms) +[0-9.]+ serve$' 'the waits of a task'
shows '^q quit .* p policy$' 'the keys in the last line'
shows '^3 tasks on 1 device.* gpreemptd [0-9.]+, up ' 'the first line'

# ---- what keys do -------------------------------------------------------------------------------

choose serve
keys c
shows "^class of $serve serve: +l lc" 'c asks which class'
keys l
is "$serve" '.class == "lc"'
shows "^$serve serve: class lc\$" 'what came of it'
choose_all
choose train
keys c b
is "$train" '.class == "be"'
shows ' be +0 .*train$' 'the new class'
keys + + + -
is "$train" '.priority == 2'
shows ' be +2 .*train$' 'the new priority'
shows "^$train train: priority 2\$" 'and that it was set'
keys h
is "$train" '.state == "suspended" and (.held_by | index("user") != null)'
shows '■ suspended' 'the state in words'
stands_still "$train" || fail 'h does not hold it'
keys r
is "$train" '.state != "suspended"'
goes_on "$train" || fail 'r does not release it'
hides 'suspended' 'the state afterwards'
keys c Escape
shows '^class not changed$' 'Esc leaves the class'
task "$train" '.class == "be"' >/dev/null || fail 'Esc changed the class'
choose_all
keys p
shows '^>priority +strict classes' 'p lists policies, at the one in force'
keys j Enter
shows '^  0 simulated H200 #0 +rr ' 'another policy'
"$GPREEMPT" top --json | jq -e '.devices[0].policy == "rr"' >/dev/null || fail 'the policy was not set'
shows '^policy: rr$' 'that it was set'
keys p Up Enter
shows '^  0 simulated H200 #0 +priority ' 'and back'
keys s
shows 'P50\*' 's sorts by the next column'
keys z
shows '^z is not a key of gpreempt top; press \? for help' 'a key that does nothing says so'
keys '?'
shows 'select a task' 'help'
keys x
shows '^DEV NAME' 'back from help'

# The selection is where j and k put it: the class is asked for another one.
keys j c
shows '^class of [0-9]+ ' 'j selects'
first=$(screen | tail -n 1)
keys Escape
keys k c
shows '^class of [0-9]+ ' 'k selects'
[[ $(screen | tail -n 1) != "$first" ]] || fail "k did not move: $first"
keys Escape

# ---- other sizes, while it runs -----------------------------------------------------------------

resize 120 40
shows '^ *PID USER .{60,}NAME$' 'a wider table'
[[ $(screen | wc -l) == 40 ]] || fail 'the screen has not 40 lines'
shows '^q quit' 'the keys in the last line of a larger screen'
[[ $(screen | tail -n 1) == 'q quit'* ]] || fail "the last line is '$(screen | tail -n 1)'"
resize 60 15
shows '^ *PID CLASS +PRI STATE +GPU +P99\*? +NAME$' 'columns go by importance'
hides 'USER' 'no user in 60 columns'
shows '(running|waiting|held|idle) .*train$' 'tasks in 60 columns'
[[ $(screen | tail -n 1) == 'q quit'* ]] || fail "the last line is '$(screen | tail -n 1)'"
resize 20 4
shows '(train|batch|serve)$' 'a task in 20 x 4'
resize 1 1
resize 80 24
shows '^DEV NAME +POLICY +BUSY' 'as before after all sizes'
shows '^ *PID USER' 'as before after all sizes'

# ---- a daemon that hangs, goes and comes --------------------------------------------------------

kill -STOP "$DAEMON"
shows '^the daemon has not answered for [0-9]+ s' 'a daemon that hangs'
keys '?'
shows 'select a task' 'keys while it hangs'
keys x
kill -CONT "$DAEMON"
shows '^3 tasks on 1 device' 'it answers again'
kill_job "$DAEMON"
shows '^(no daemon answers|the daemon has closed)' 'a daemon that is gone'
keys h
shows '^not connected to the daemon' 'an action without one'
start_daemon --policy priority
shows '^3 tasks on 1 device' 'it is found again'
is "$train" '.class == "be"'
shows ' be +2 .* [0-9]+% .*train$' 'its tasks and shares'
keys q
finish
