#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""protocol_examples.py SOCKET PAGE: sends every line of the page that begins with "--> " and
compares what comes back with the line "<-- " below it, then runs the page's Python. "..." stands
for anything."""
import json
import re
import socket
import subprocess
import sys


def agrees(said, came):
    """Members in any order, and no others."""
    if said in ("...", ["..."]):
        return True
    if isinstance(said, dict):
        return (isinstance(came, dict) and said.keys() == came.keys()
                and all(agrees(said[key], came[key]) for key in said))
    if isinstance(said, list):
        return (isinstance(came, list) and len(said) == len(came)
                and all(map(agrees, said, came)))
    return type(said) is type(came) and said == came


def main(path, page):
    text = open(page, encoding="utf-8").read()
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(path)
    answers = connection.makefile(encoding="utf-8")
    sent = wrong = 0
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("--> "):
            connection.sendall(line[4:].encode() + b"\n")
            sent += 1
        elif line.startswith("<-- "):
            came = answers.readline()
            if not agrees(json.loads(line[4:]), json.loads(came)):
                wrong += 1
                print(f"the page says {line[4:]}\nit is         {came}", file=sys.stderr)
    for program in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        wrong += subprocess.run([sys.executable, "-W", "error", "-c", program], check=False).returncode != 0
    print(f"{sent} requests")
    return 1 if wrong or not sent else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
