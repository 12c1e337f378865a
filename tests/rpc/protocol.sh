#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What docs/protocol.md shows is what the server does.
set -u
command -v python3 >/dev/null || exit 77

coproc server { exec "$RPC_SERVER"; }
# shellcheck disable=SC2154 # coproc sets it
pid=$server_PID input=${server[1]}
read -r -u "${server[0]}" path || exit 1
GPREEMPT_SOCKET=$path timeout 100 \
	python3 "$SRC/tests/rpc/protocol_examples.py" "$path" "$SRC/docs/protocol.md"
status=$?
exec {input}>&-
wait "$pid" || exit 1
exit "$status"
