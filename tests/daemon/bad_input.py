# SPDX-License-Identifier: Apache-2.0
"""Bad input for a running gpreemptd: bad_input.py SOCKET. Every line gets an error or a clean close,
a second client is answered all the while, and afterwards the daemon is as it was."""
import json
import os
import random
import socket
import sys
import threading
import time

PATH = sys.argv[1]
PATIENCE = 30  # seconds, for one answer
failures = 0


def fail(text):
    global failures
    failures += 1
    print("FAILED:", text)


class Client:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(PATH)  # waits for its turn, which one with a time limit does not
        self.socket.settimeout(PATIENCE)
        self.rest = b""

    def send(self, data, files=()):
        """False: the daemon has hung up."""
        try:
            if files:
                socket.send_fds(self.socket, [data], files)
            else:
                self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def line(self):
        """The next line as an object; None: a clean close."""
        while b"\n" not in self.rest:
            try:
                more = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not more:
                return None
            self.rest += more
        first, self.rest = self.rest.split(b"\n", 1)
        return json.loads(first)

    def ask(self, method, params=None, number=1):
        request = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            request["params"] = params
        self.send(json.dumps(request).encode() + b"\n")
        while True:
            answer = self.line()
            if answer is None or answer.get("id") == number:
                return answer

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def is_error(answer):
    return answer is None or "error" in answer


# ---- somebody else, meanwhile -------------------------------------------------------------------
class Bystander(threading.Thread):
    def __init__(self):
        super().__init__()
        self.over = threading.Event()
        self.answers = 0
        self.worst = 0.0
        self.trouble = None

    def run(self):
        try:
            with Client() as client:
                while not self.over.is_set():
                    began = time.monotonic()
                    answer = client.ask("tasks", {})
                    if answer is None or "result" not in answer:
                        self.trouble = f"it was answered {answer}"
                        return
                    self.worst = max(self.worst, time.monotonic() - began)
                    self.answers += 1
                    time.sleep(0.005)
        except OSError as error:
            self.trouble = f"{error} after {self.answers} answers"


# ---- wrong types, for every member of every method -----------------------------------------------
VALUES = [None, True, False, -1, 0, 1.5, 1e308, 2**63, -(2**63), "", "x", "x" * 4000, "\u00e9", [], [[]],
          [1, "a"], {}, {"a": 1}, {"self": 1}, {"pid": "1"}, {"pidfd": 9}]
MEMBERS = {
    "hello": ["version"],
    "devices": [],
    "tasks": ["device", "pid"],
    "stats": [],
    "set": ["target", "inherit", "force", "class", "priority", "weight", "share_permille", "ceiling_permille",
            "deadline_ns", "budget_ns", "gang"],
    "hold": ["target", "force"],
    "release": ["target"],
    "release_all": [],
    "policy": ["policy", "device"],
    "reload": [],
    "subscribe": ["events"],
    "hint": [],
    "mark": ["begins"],
}
# What is right after all: the daemon may say yes.
GOOD = {
    ("tasks", "device"): [0], ("set", "inherit"): [True, False], ("set", "force"): [True, False],
    ("set", "priority"): [0], ("set", "share_permille"): [0], ("set", "ceiling_permille"): [0],
    ("set", "deadline_ns"): [0], ("set", "budget_ns"): [0],
    ("set", "gang"): ["", "x", "\u00e9"], ("subscribe", "events"): [[]], ("mark", "begins"): [True, False],
    ("policy", "device"): [0],
}


REQUIRED = [("hello", "version"), ("mark", "begins")]


def is_good(method, member, value):
    if value is None:  # as if it were not there
        return member in MEMBERS[method] and (method, member) not in REQUIRED
    return any(value == good and type(value) is type(good) for good in GOOD.get((method, member), []))


def wrong_types():
    with Client() as client:
        told = client.ask("hello", {"version": 1})["result"]["methods"]
    if set(told) | {"hello"} != set(MEMBERS):
        fail(f"the daemon has methods that are not tried here: {set(told) ^ set(MEMBERS)}")
    tried = 0
    for method, members in MEMBERS.items():
        with Client() as client:
            for member in members + ["unknown"]:
                for value in VALUES:
                    answer = client.ask(method, {member: value}, tried)
                    tried += 1
                    if answer is None:
                        fail(f"{method} {member}={value!r:.40}: the daemon hung up")
                        return
                    if not is_error(answer) and not is_good(method, member, value):
                        fail(f"{method} {member}={value!r:.40} was taken: {str(answer)[:200]}")
                    if is_error(answer) and (not answer["error"]["message"] or not answer["error"]["data"]["errno"]):
                        fail(f"{method} {member}={value!r:.40}: no sentence in {answer}")
            for params in VALUES:
                if params in ({}, None):
                    continue
                answer = client.ask(method, params, tried)
                tried += 1
                if not is_error(answer):
                    fail(f"{method} with params {params!r:.40} was taken")
    print(f"{tried} wrong values refused")


# ---- lines that are none --------------------------------------------------------------------------
def refused(data, what):
    with Client() as client:
        client.send(data)
        try:
            client.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answers = []
        while (answer := client.line()) is not None:
            answers.append(answer)
        if any(not is_error(a) for a in answers):
            fail(f"{what} was taken: {str(answers)[:200]}")


def bad_lines():
    good = b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"version":1}}'
    for length in range(1, len(good)):
        refused(good[:length], f"half a line of {length} bytes")
        with Client() as client:  # and one that just goes
            client.send(good[:length])
    for depth in (33, 1000, 30000):
        refused(b'{"jsonrpc":"2.0","id":1,"method":"hello","params":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}\n",
                f"nesting of {depth}")
        refused(b"[" * depth + b"\n", f"{depth} open arrays")
    for text in (b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x00"):
        refused(b'{"jsonrpc":"2.0","id":"' + text + b'","method":"hello"}\n', f"not UTF-8: {text!r}")
    chance = random.Random(1)
    for i in range(200):
        refused(chance.randbytes(chance.randrange(1, 4000)) + b"\n", f"random bytes {i}")
        line = bytearray(good + b"\n")
        line[chance.randrange(len(good))] = chance.randrange(256)
        with Client() as client:  # a byte of a good line: whatever comes, it is an answer or a close
            client.send(bytes(line))
            client.socket.shutdown(socket.SHUT_WR)
            while client.line() is not None:
                pass


def long_line():
    """A gigabyte without an end: the daemon hangs up long before."""
    with Client() as client:
        block, sent = b"a" * (1 << 20), 0
        while sent < 1 << 30 and client.send(block):
            sent += len(block)
        if sent > 64 << 20:
            fail(f"{sent >> 20} MiB of one line were read")
        answer = client.line()
        if not is_error(answer):
            fail(f"a line of a gigabyte was taken: {answer}")
    print(f"a line of 1 GiB: the daemon hung up within {(sent >> 20) + 1} MiB")


# ---- too much of everything -----------------------------------------------------------------------
def file_flood():
    """The daemon takes no files; Linux refuses them from 6.16 on."""
    null = os.open("/dev/null", os.O_RDONLY)
    for count in (1, 4, 5, 64, 250):
        with Client() as client:
            line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hold", "params": {}}).encode()
            try:
                if client.send(line + b"\n", [null] * count) and not is_error(client.line()):
                    fail(f"a hold with {count} files was taken")
            except PermissionError:
                pass
    os.close(null)


def connect_flood():
    clients = []
    for _ in range(800):
        try:
            client = Client()
        except OSError:
            break
        clients.append(client)
        client.send(b"x")
    print(f"{len(clients)} connections at one time")
    for client in clients:
        client.close()


def slow_readers():
    """They subscribe, ask for much, and never read."""
    slow = [Client() for _ in range(20)]
    for client in slow:
        client.send(b'{"jsonrpc":"2.0","id":1,"method":"subscribe"}\n')
    with Client() as busy:
        for number in range(300):
            busy.ask("set", {"class": "be", "priority": number % 8}, number)
    for client in slow:
        client.socket.setblocking(False)
        try:
            for _ in range(2000):
                client.socket.send(b'{"jsonrpc":"2.0","id":1,"method":"stats"}\n')
        except OSError:
            pass
    time.sleep(0.5)
    for client in slow:
        client.close()


# ---- before and after -----------------------------------------------------------------------------
def size(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def try_everything():
    for attack in (wrong_types, bad_lines, long_line, file_flood, connect_flood, slow_readers):
        bystander = Bystander()
        bystander.start()
        began = time.monotonic()
        attack()
        bystander.over.set()
        bystander.join()
        if bystander.trouble:
            fail(f"{attack.__name__}: somebody else had trouble: {bystander.trouble}")
        print(f"{attack.__name__}: {time.monotonic() - began:.1f} s, somebody else was answered "
              f"{bystander.answers} times, at worst after {bystander.worst * 1000:.0f} ms")
        if bystander.worst > 5:
            fail(f"{attack.__name__}: somebody else waited {bystander.worst:.1f} s")


def main():
    with Client() as client:
        pid = client.ask("stats")["result"]["daemon"]["pid"]
    try_everything()  # once for the memory that is kept for the next time
    time.sleep(1)
    before = size(pid)
    try_everything()
    for _ in range(200):  # clients that have gone are noticed
        after = size(pid)
        if after[1] <= before[1]:
            break
        time.sleep(0.1)
    print(f"memory {before[0] >> 10} KiB, then {after[0] >> 10} KiB; files {before[1]}, then {after[1]}")
    if after[1] > before[1]:
        fail(f"{after[1] - before[1]} files were left open")
    if after[0] > before[0] + (4 << 20) and not os.environ.get("GPREEMPT_SANITIZE"):
        fail(f"{(after[0] - before[0]) >> 10} KiB were left behind")
    return 1 if failures else 0


sys.exit(main())
