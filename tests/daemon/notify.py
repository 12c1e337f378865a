#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""notify.py SOCKET FILE: plays the service manager's end of sd_notify(3): writes what it is told to FILE,
a line each."""
import os
import socket
import sys

path, out = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(path)
os.chmod(path, 0o666)
with open(out, "w", encoding="utf-8", buffering=1) as file:
    while True:
        file.write(listener.recv(4096).decode() + "\n")
