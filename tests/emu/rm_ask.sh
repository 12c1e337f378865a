#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ask.sh RM-ASK: the emulator answers what an H200 with driver 580.159.04 answered (h200-580.txt,
# the output of rm-ask there).
set -euo pipefail
# shellcheck source=emu/nvidia/emu.bash
source "$SRC/emu/nvidia/emu.bash"

start_emu --gpus 1
"$1" | diff "$(dirname "$0")/h200-580.txt" -
