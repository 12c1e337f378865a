#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A good configuration is in force after a reload; a wrong one changes nothing.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
configure <<<'policy: none'
systemctl restart gpreemptd
until_true has_device || fail 'no device after a restart'
pid=$(pid_of gpreemptd)
start_load job carol

has_class() {
	[[ $(task "$LOAD" class) == "$1" ]]
}
printf 'policy: none\nrules: [{match: {user: carol}, class: be}]\n' | configure
try systemctl reload gpreemptd
exits 0 '' 'reload'
until_true has_class be || fail "after a reload it is $(task "$LOAD" class)"
until_true is_active gpreemptd || fail "after a reload it is $(property gpreemptd ActiveState)"

printf 'policy: none\nrules: [{match: {user: carol}, claas: lc}]\n' | configure
try systemctl reload gpreemptd
exits 0 '' 'reload of a wrong file'
wrong() {
	said gpreemptd '^config.rejected '
}
until_true wrong || fail 'a wrong file is not said'
has_fields GPREEMPT_EVENT=config.rejected '"PRIORITY":"3"' "gpreempt.yaml:3: *perhaps 'class' is meant"
until_true is_active gpreemptd || fail "after a wrong file it is $(property gpreemptd ActiveState)"
has_class be || fail "a wrong file made it $(task "$LOAD" class)"
[[ $(pid_of gpreemptd) == "$pid" ]] || fail 'it is another process'

# At a start it is refused; it is tried again until the file is right.
try systemctl restart gpreemptd
[[ $status != 0 ]] || fail 'it starts with a wrong file'
runs "$LOAD" 'without a daemon'
configure <<<'policy: none'
until_true has_device || fail "with a good file it is $(property gpreemptd ActiveState)"
systemctl stop job
finish
