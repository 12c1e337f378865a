#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Members of the group govern; others only their own programs, and downwards.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
start_load job carol
carols=$LOAD

# bob, a user without special rights.
try as bob gpreempt ps --json
exits 0 '' "bob's ps"
[[ $(member "$carols" class <<<"$out") == unmanaged ]] || fail "bob sees of carol's program: $out"
try as bob gpreempt run --class be -- true
exits 0 '' 'bob runs something'
try as bob gpreempt run --class lc -- true
exits 125 'gpreempt: class lc is above your limit*' 'bob runs something above his limit'
for verb in 'suspend' 'set --class be'; do
	# shellcheck disable=SC2086
	try as bob gpreempt $verb "$carols"
	exits 3 'gpreempt: *' "bob: $verb of carol's program"
done
setpriv --reuid bob --regid bob --init-groups \
	gpreempt run --class be -- gpreempt simload --name bobs --kernel 10ms >"$work/bobs" 2>&1 &
bobs=$!
until_true is_seen "$bobs" || fail "bob's program is not seen: $(<"$work/bobs")"
[[ $(task "$bobs" class) == be ]] || fail "bob's program is $(task "$bobs" class)"
try as bob gpreempt suspend "$bobs"
exits 0 '' 'bob suspends his own program'
stands "$bobs" 'after bob has suspended it'
try as bob gpreempt resume "$bobs"
exits 0 '' 'bob resumes it'
runs "$bobs" 'after bob has resumed it'
try as bob gpreempt set "$bobs" --class lc
exits 3 'gpreempt: *' 'bob raises his program'
try as bob gpreempt policy rr
exits 3 'gpreempt: *' 'bob chooses a policy'

# alice, who is in the group.
try as alice gpreempt suspend "$carols"
exits 0 '' "alice suspends carol's program"
stands "$carols" 'after alice has suspended it'
try as alice gpreempt resume "$carols"
exits 0 '' 'alice resumes it'
runs "$carols" 'after alice has resumed it'
try as alice gpreempt set "$carols" --class lc --priority 3
exits 0 '' "alice raises carol's program"
[[ $(task "$carols" class)$(task "$carols" priority) == lc3 ]] || fail "it is $(gpreempt ps)"
kill "$bobs"
systemctl stop job
finish
