#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs gpreempt on an emulated driver that misbehaves and compares every statement with the truth.

A combination is VENDOR/ACTION/OPERATION:FAULT@WHEN. The fault is injected by hostile_shim.so into
gpreempt's own processes, or (operation `emu`) by the emulator's control file. The truth is the
emulator's file `state`. A combination fails if a statement (held, released, nothing was held,
ready, in force, exit code 0, a count) is false, or if a program stays stopped at the end.
"""
import argparse
import ctypes
import hashlib
import itertools
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ.get('BUILD', 'build/test')
SHIM = os.environ.get('HOSTILE_SHIM', BUILD + '/tests/hostile/hostile_shim.so')
GPREEMPT = BUILD + '/gpreempt'
GPREEMPTD = BUILD + '/gpreemptd'
KEEPER = BUILD + '/gpreempt-keeper'
HOLDER = BUILD + '/tests/lib/lib-holder'
COMMAND_LIMIT_S = 10  # for one command, with a driver that answers
CORRECT_S = 2.5       # for a hold that the driver confirms and has not made
HANG_S = 1.0          # how long a hanging call hangs
LOOK_S = 0.06         # a running program makes progress within this time
BACK_S = 4.0          # for a program to run again after the faults are gone
TEXT_BYTES = 4096
MAX_RULES = 16
UNCLEAR_TRIES = 5     # see class Pace
SAMPLER_GAP_S = 0.1   # a policy's slices and holds last longer


def patience():
    """How many times longer a limit is on a machine that others use, too."""
    return max(1.0, min(6.0, os.getloadavg()[0] / (2 * (os.cpu_count() or 1))))


def wait_until(condition, limit_s, pause_s=0.01):
    end = time.monotonic() + limit_s * patience()
    while True:
        if condition():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(pause_s)


class Page:
    """The file that hostile_shim.c maps: rules and counters."""

    def __init__(self, path):
        with open(path, 'wb') as f:
            f.write(b'\0' * 8192)
        self.file = open(path, 'r+b')
        self.map = mmap.mmap(self.file.fileno(), 8192)
        self.path = path

    def set(self, rules):
        text = '\n'.join(rules).encode() + b'\0'
        self.map[0] = 0
        self.map[TEXT_BYTES + 8:TEXT_BYTES + 8 + 8 * MAX_RULES] = b'\0' * (8 * MAX_RULES)
        self.hang(True)
        if len(text) > 1:
            self.map[1:len(text)] = text[1:]
            self.map[0] = text[0]

    def clear(self):
        self.map[0] = 0
        self.hang(False)

    def hang(self, on):
        self.map[TEXT_BYTES:TEXT_BYTES + 4] = struct.pack('<I', on)

    def hanging(self):
        return struct.unpack('<I', self.map[TEXT_BYTES + 4:TEXT_BYTES + 8])[0]

    def seen(self):
        at = TEXT_BYTES + 8
        return struct.unpack('<%dI' % MAX_RULES, self.map[at:at + 4 * MAX_RULES])

    def applied(self):
        at = TEXT_BYTES + 8 + 4 * MAX_RULES
        return sum(struct.unpack('<%dI' % MAX_RULES, self.map[at:at + 4 * MAX_RULES]))


class Emulator:
    """An emulated driver, two best-effort programs and a service on it."""

    def __init__(self, program, load, options, loads):
        self.tmp = tempfile.mkdtemp(prefix='hostile-', dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None)
        self.mount = self.tmp + '/mount'
        os.mkdir(self.mount)
        self.env = dict(os.environ)
        self.load_program = load
        self.loads = []
        self.process = subprocess.Popen([program] + options + [self.mount], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        line = self.process.stdout.readline()
        if not line.startswith('ready'):
            print('the emulator cannot be started: ' + line)
            self.stop()
            sys.exit(77)
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.set_env()
        self.load_options = loads
        for options in loads:
            self.loads.append(self.start_program(options))

    def start_program(self, options):
        p = subprocess.Popen([self.load_program] + options, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, env=self.env)
        p.stdout.readline()
        threading.Thread(target=p.stdout.read, daemon=True).start()
        return p

    def control(self, line):
        with open(self.mount + '/control', 'w') as f:
            f.write(line + '\n')

    def state(self):
        for _ in range(5):
            try:
                with open(self.mount + '/state') as f:
                    return json.load(f)
            except ValueError:
                pass
        raise RuntimeError('the state cannot be read')

    def stop(self):
        for p in self.loads:
            p.kill()
            p.wait()
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        subprocess.run(['umount', '-l', self.mount], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.tmp, ignore_errors=True)

    def alive(self):
        return self.process.poll() is None and all(p.poll() is None for p in self.loads)

    # A look at a program: (queues, queues that are held, work done, often held)
    def stands_still(self, pid):
        """Held at two looks and without progress in between. The first look may come while the
        last kernel before the hold is being counted."""
        for _ in range(2):
            a = self.look(pid)
            time.sleep(LOOK_S)
            b = self.look(pid)
            if a['held'] == a['queues'] and b['held'] == b['queues'] and a['done'] == b['done']:
                return True
        return False

    def runs(self, pid, limit_s):
        """No queue is held, and it makes progress."""
        first = self.look(pid)['done']
        return wait_until(lambda: (lambda x: not x['held'] and x['done'] > first)(self.look(pid)), limit_s)


class Amd(Emulator):
    name = 'amd'
    emu_clear = ['clear_faults']

    def __init__(self):
        super().__init__(BUILD + '/emu/kfd/kfd-emu', BUILD + '/emu/kfd/kfd-load', ['--gpu', 'mi250'],
                         [['--queues', '2', '--steps', '3'], ['--period', '20000']])

    def wake(self):
        """After a failed preemption the driver maps queues at its next change: a new queue is one."""
        subprocess.run([self.load_program, '--packets', '1'], env=self.env, stdout=subprocess.DEVNULL, timeout=20)

    def set_env(self):
        self.env.update(GPREEMPT_KFD=self.mount + '/kfd', GPREEMPT_KFD_SYSFS=self.mount + '/sysfs',
                        GPREEMPT_KFD_DEBUGFS=self.mount + '/debugfs', GPREEMPT_NVIDIACTL=self.tmp + '/none')

    def look(self, pid):
        look = {'queues': 0, 'held': 0, 'done': 0, 'evicted': False, 'holds': 0, 'debugged': False}
        for p in self.state()['processes']:
            if p['process'] != pid:
                continue
            look['holds'] = p['suspends']
            look['debugged'] = p['debugged']
            for q in p['queues']:
                if q['type'] == 1:
                    continue
                look['queues'] += 1
                look['held'] += q['suspended']
                look['done'] += q['executed']
                look['evicted'] |= q['evicted']
        return look


class Nvidia(Emulator):
    name = 'nvidia'

    def __init__(self):
        super().__init__(BUILD + '/emu/nvidia/rm-emu', BUILD + '/emu/nvidia/rm-load', ['--gpus', '1'],
                         [['--kernel-us', '1000'], ['--kernel-us', '100', '--period-us', '20000']])

    def wake(self):
        pass

    def set_env(self):
        self.env.update(GPREEMPT_NVIDIACTL=self.mount + '/nvidiactl', GPREEMPT_KFD=self.tmp + '/none',
                        GPREEMPT_NVML=BUILD + '/emu/nvidia/libnvml-emu.so')

    def look(self, pid):
        look = {'queues': 0, 'held': 0, 'done': 0, 'slices': []}
        for c in self.state()['clients']:
            for g in c['groups']:
                if g['pid'] != pid or g['engine'] != 1:
                    continue
                look['queues'] += 1
                look['held'] += g['held']
                look['done'] += sum(ch['done'] for ch in g['channels'])
                look['slices'].append(g['slice_us'])
        return look


class Program:
    """A process of gpreempt. Its lines are judged the moment they are printed."""

    def __init__(self, run, words, hostile=True, stdin=subprocess.DEVNULL):
        env = dict(run.env)
        if hostile:
            env.update(LD_PRELOAD=SHIM, HOSTILE=run.page.path)
        self.run = run
        self.words = words
        self.lines = []
        self.signalled = False
        self.begun = time.monotonic()
        run.trace('$ ' + ' '.join(words) + ('' if hostile else '   (true driver)'))
        self.process = subprocess.Popen(words, stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=env, bufsize=1,
                                        errors='replace')
        self.pid = self.process.pid
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        run.programs.append(self)

    def read(self):
        for line in self.process.stdout:
            line = line.rstrip('\n')
            self.run.trace('%5d| %s' % (self.pid, line[:300]))
            self.run.judge_line(self, line)
            self.lines.append(line)

    def said(self, pattern):
        return any(re.search(pattern, line) for line in self.lines)

    def text(self):
        return '\n'.join(self.lines)

    def until_said(self, pattern, limit_s=COMMAND_LIMIT_S):
        wait_until(lambda: self.said(pattern) or not self.thread.is_alive(), limit_s, 0.005)
        return self.said(pattern)

    def ended(self):
        return self.process.poll() is not None

    def wait(self, limit_s=COMMAND_LIMIT_S):
        """Its exit code; None: it did not end."""
        if '+' in self.run.c.op:
            limit_s += COMMAND_LIMIT_S  # a release is tried for 5 s, and once more at the end
        if self.run.hangs:
            wait_until(self.ended, HANG_S)
            self.run.page.hang(False)
        limit_s *= patience()
        try:
            code = self.process.wait(limit_s)
            self.thread.join(5)
            self.run.trace('%5d: exit %d' % (self.pid, code))
            return code
        except subprocess.TimeoutExpired:
            self.run.false('%s: does not end within %d s' % (' '.join(self.words[1:3]), limit_s))
            self.kill()
            return None

    def signal(self, number):
        self.signalled = True  # it releases the target, or is stopped
        if not self.ended():
            self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.thread.join(5)


class Run:
    """One combination."""

    def __init__(self, emulator, combination, verbose):
        self.emulator = emulator
        self.c = combination
        self.verbose = verbose
        self.start = time.monotonic()
        self.programs = []
        self.faults = []   # false statements
        self.stopped = []  # programs left stopped
        self.log = []
        self.hangs = 'hang' in combination.fault
        self.folder = tempfile.mkdtemp(prefix='run-', dir=emulator.tmp)
        self.page = Page(self.folder + '/page')
        self.env = dict(emulator.env, GPREEMPT_RUN=self.folder, GPREEMPT_UNDO=self.folder + '/undo',
                        GPREEMPT_SOCKET=self.folder + '/gpreemptd.sock')
        for name in ('NOTIFY_SOCKET', 'LD_PRELOAD'):
            self.env.pop(name, None)
        self.target = emulator.loads[0].pid
        self.service = emulator.loads[1].pid
        self.first = self.look()
        self.slices = self.all_slices()
        self.daemon = self.keeper = None
        self.applied = 0
        self.injected = self.healed = False
        self.lock = threading.Lock()
        self.ops = list(FAULTS[combination.vendor])  # at most MAX_RULES
        self.called = []

    def trace(self, line):
        line = '%7.3f %s' % (time.monotonic() - self.start, line)
        self.log.append(line)
        if self.verbose:
            print(line, file=sys.stderr, flush=True)

    def false(self, text):
        self.trace('FALSE: ' + text)
        self.faults.append(text)

    def look(self):
        return self.emulator.look(self.target)

    def all_slices(self):
        """Of both programs; None on AMD GPUs, which have none."""
        service = self.emulator.look(self.service)
        return self.look()['slices'] + service['slices'] if 'slices' in service else None

    # The fault.
    def inject(self, phase):
        """Phase: begin, or held (when the target is held)."""
        with self.lock:  # held is said by a command and by an event
            if self.c.phase != phase or self.injected:
                return
            self.injected = True
        self.trace('inject ' + self.c.fault)
        if self.c.op == 'emu':
            for line in self.c.fault.split(';'):
                self.emulator.control(line.replace('PID', str(self.target)))
            self.applied = 1
        elif self.c.op == 'probe':
            self.page.set(['* %s %%4000000000 errno 5' % op for op in self.ops])
        else:
            self.page.set(['* %s %s %s' % rule for rule in zip(
                self.c.op.split('+'), [self.c.times] * 3, self.c.fault.split(';'))])

    def heal(self):
        if self.healed:
            return
        self.healed = True
        self.applied += self.page.applied()
        self.called = [op for op, n in zip(self.ops, self.page.seen()) if n]
        self.page.clear()
        if self.c.op == 'emu':
            self.emulator.control('clear_faults')
            for line in self.c.heal:
                try:
                    self.emulator.control(line.replace('PID', str(self.target)).replace('SERVICE', str(self.service)))
                except ProcessLookupError:
                    pass  # a target that has ended, or executes another program
            self.emulator.wake()
        self.trace('faults cleared, applied %d times' % self.applied)

    # Statements.
    def judge_line(self, program, line):
        m = re.match(r'held (\d+) |held (\d+)$', line)
        if m and (m.group(2) or int(m.group(1)) == self.target):
            self.judge_held(program, line)
        m = re.match(r'released (\d+) ', line)
        if m and int(m.group(1)) == self.target:
            self.judge_released(line)
        if re.match(r'\d+ .* was released by another process', line):
            self.judge_released(line)
        if line.startswith('{"event":"held"') and json.loads(line)['pid'] == self.target:
            self.judge_held(program, 'event held')
        if line.startswith('{"event":"released"') and json.loads(line)['pid'] == self.target:
            self.judge_released('event released')
        if re.search(r'released %d .*; evicted by|task.evicted pid=%d ' % (self.target, self.target), line) and \
                not self.look()['evicted']:
            self.false('says "%s", and it is not evicted' % line)
        # What gpreemptd sees depends on the driver; an honest one shows it everything.
        if re.search(r'process %d (has no queues|does not use)' % self.target, line) or \
                (self.c.fault == 'reset_counts' and
                 re.search(r'^%d .*not seen on a GPU|sees no queues of process %d' % (self.target, self.target), line)):
            if self.look()['queues']:
                self.false('says "%s", and it has %d queues' % (line, self.look()['queues']))
        if line == 'nothing was held' and self.look()['held'] and not self.lies_agree('release'):
            time.sleep(0.05)  # a release by its owner may be under way
            if self.look()['held']:
                self.false('says "nothing was held", and %(held)d of %(queues)d queues are held' % self.look())

    def judge_held(self, program, line):
        if not self.look()['queues']:
            self.false('says "%s", and it has no queues' % line)
        still = self.emulator.stands_still(self.target) or program.ended() or program.signalled
        # An event is read beside the commands: the looks may have lasted until a `resume`.
        still = still or (line == 'event held' and self.releasing)
        # An event is printed beside the actions, which may have gone on, and a hold for 300 ms may be over
        # if the machine is busy: then the driver has counted it.
        if not still and 'holds' in self.first and \
                (line == 'event held' or time.monotonic() > program.begun + 0.3):
            still = self.look()['holds'] >= self.first['holds'] + self.first['queues']
        if '(not confirmed' in line:
            self.trace('not said to be so')
        elif not still and self.lies_agree('hold'):
            self.trace('not so, and the driver confirms it: to be corrected within %.1f s' % CORRECT_S)
        elif not still:
            self.false('says "%s", and %s' % (line, self.describe()))
        self.inject('held')

    def lies_agree(self, op):
        """The driver does nothing and confirms it: only the work of the target tells, and later."""
        return (self.c.op, self.c.fault) in NV_AGREE and self.c.op.startswith(op)

    def judge_released(self, line):
        if self.lies_agree('release') and ('only the driver confirms it' in line or line == 'event released'):
            return
        if not wait_until(lambda: not self.look()['held'], 0.2):
            self.false('says "%s", and %s' % (line, self.describe()))
        elif self.look()['queues'] and not self.gpu_hangs() and not self.emulator.runs(self.target, 2):
            self.false('says "%s", and %s' % (line, self.describe()))

    def gpu_hangs(self):
        """The driver has evicted it, or cannot map queues. It is released if it has no session: nothing of
        gpreempt stops it, and a new queue or the driver's reset would let it run."""
        look = self.look()
        return look.get('evicted') or ('preempt_timeout' in self.c.fault and not look['debugged'])

    def describe(self):
        a = self.look()
        time.sleep(LOOK_S)
        b = self.look()
        return '%d of %d queues are held, %d packets of work done in %d ms' % (
            b['held'], b['queues'], b['done'] - a['done'], LOOK_S * 1000)

    # Processes.
    def gpreempt(self, *words, hostile=True):
        self.releasing |= words[0] == 'resume'
        return Program(self, [GPREEMPT] + [str(w) for w in words], hostile)

    def start_daemon(self, hostile=True, keeper=True, events=False, wait=True):
        config = self.folder + '/gpreempt.yaml'
        with open(config, 'w') as f:
            f.write('policy: priority\nlog: info\n')
        if keeper:
            self.keeper = Program(self, [KEEPER, '--timeout', '0.7'], hostile)
        self.daemon = Program(self, [GPREEMPTD, '--gpu', self.emulator.name, '--config', config], hostile)
        if not self.daemon.until_said('daemon.ready'):
            return False
        # The daemon finds programs a moment after it is ready; daemon-ready is about that moment.
        if wait:
            wait_until(lambda: self.quiet_ps() or self.hangs, 1.5, 0.03)
        if events:
            self.gpreempt('events', '--json', '--kind', 'held,released', hostile=False)
        return True

    def quiet_ps(self):
        """Whether ps lists the target."""
        p = subprocess.run([GPREEMPT, 'ps', '--json', '--for', '1ms'], env=self.env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           timeout=COMMAND_LIMIT_S * patience())
        return '"pid":%d,' % self.target in p.stdout

    def answer(self, *words):
        """The JSON that a command writes; None: it failed."""
        p = self.gpreempt(*words, hostile=self.daemon is None)
        if p.wait() != 0:
            return None
        try:
            return json.loads(p.text())
        except ValueError:
            return None

    def task(self, tasks):
        """The target in a list of tasks."""
        return next((task for task in tasks or () if task.get('pid') == self.target), None)

    def ps(self):
        """What ps says of the target: a dict; None: nothing."""
        return self.task(self.answer('ps', '--json', '--for', '1ms'))

    def is_held(self, pid):
        look = self.emulator.look(pid)
        return look['queues'] and look['held'] == look['queues']

    def knows_target(self, lives):
        """Whether a record of the target exists, or ps lists it. On NVIDIA GPUs the record of a process
        that lives stays: it may be that the driver does not name its queues."""
        if lives and self.c.vendor == 'nvidia':
            return self.quiet_ps()
        p = subprocess.run([GPREEMPT, 'doctor', '--json'], env=self.env, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, timeout=COMMAND_LIMIT_S * patience())
        return json.loads(p.stdout)['records'] > 0 or self.quiet_ps()

    def judge_ps(self):
        self.judge_state('ps', self.ps)

    def judge_state(self, source, ask, held_lately=False):
        """The state is what prevailed in the last second: `held_lately` if a policy held it then."""
        before = self.look()
        task = ask()
        after = self.look()
        if not task or 'state' not in task:
            return
        self.trace('%s: state %s' % (source, task['state']))
        if self.c.op.endswith('channel_state') and self.c.fault.split(';')[-1].split()[0] in ('lie', 'value') and not self.daemon:
            return  # without a daemon ps has no other source than this call
        held = task['state'] in ('held', 'suspended')
        if self.lies_agree('release') and task.get('confirmed_by') == 'driver':
            return
        if held and not held_lately and not self.lies_agree('hold') and not before['held'] and not after['held'] and after['done'] > before['done']:
            self.false('%s says %s, and %s' % (source, task['state'], self.describe()))
        if not held and before['held'] == before['queues'] and after['held'] == after['queues'] \
                and before['done'] == after['done']:
            self.false('%s says %s, and %s' % (source, task['state'], self.describe()))

    def exit_of_interrupted(self, code, what):
        """A call that a signal interrupted is repeated, and no failure."""
        if code and self.c.fault == 'errno %d' % EINTR and self.c.times in ('1', '2') and self.page.applied():
            self.false('%s: one interrupted call is a failure (exit %d)' % (what, code))

    def exit_is_true(self, program, code, what):
        """Exit 0 of a command that should have released the target."""
        self.exit_of_interrupted(code, what)
        if self.lies_agree('release'):
            return  # the line says what is known
        if code == 0 and self.look()['held'] and not wait_until(lambda: not self.look()['held'], 0.3):
            self.false('%s: exit 0, and %s' % (what, self.describe()))

    def judge_undone(self, keeper, what, limit_s):
        """The log of the keeper says if nothing but the driver confirms it."""
        if self.lies_agree('release') and keeper.said('undone .* confirmed_by=driver'):
            return
        if not wait_until(lambda: not self.look()['held'], limit_s):
            self.false('%s, and %s' % (what, self.describe()))

    # The end: nothing is left stopped.
    def end(self):
        self.heal()
        back = False
        if self.daemon and not self.daemon.ended() and not self.expects_held:
            back = self.emulator.runs(self.target, BACK_S)
            if not back and not self.lies_agree('release'):
                self.false('the daemon left it stopped for %d s after the faults: %s' % (BACK_S, self.describe()))
        for p in (self.daemon, self.keeper):
            if p:
                p.signal(signal.SIGTERM)
                if p.wait(10) == 0 and p is self.daemon and not self.lies_agree('release') and \
                        not self.emulator.runs(self.target, BACK_S):
                    self.false('gpreemptd: exit 0, and %s' % self.describe())
        for p in self.programs:
            if not p.ended():
                p.kill()
        if self.lies_agree('release'):  # as the driver confirmed it, there is no record
            self.gpreempt('resume', self.target, '--no-daemon', hostile=False).wait()
        if not self.emulator.runs(self.target, 0.5) or not self.emulator.runs(self.service, 0.5):
            # On NVIDIA GPUs queues stay disabled; the keeper's --once follows an ended service. It
            # ends after 3 s, whether it is done or not.
            for _ in range(int(patience())):
                if Program(self, [KEEPER, '--once'], hostile=False).wait() == 0:
                    break
        if self.all_slices() != self.slices:
            Program(self, [KEEPER, '--once'], hostile=False).wait()
            if self.all_slices() != self.slices:
                self.stopped.append('slices of target and service %s instead of %s' %
                                    (self.all_slices(), self.slices))
        if not self.emulator.runs(self.target, BACK_S):
            self.stopped.append('the target: ' + self.describe())
            self.trace('LEFT STOPPED')
            self.gpreempt('resume', '--all', hostile=False).wait()
        if not self.emulator.runs(self.service, BACK_S):
            self.stopped.append('the service: %s' % self.emulator.look(self.service))
        for p in self.programs:
            if p.process.returncode and -p.process.returncode in (
                    signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE):
                self.false('%s ended by signal %d' % (p.words[0], -p.process.returncode))
        shutil.rmtree(self.folder, ignore_errors=True)

    expects_held = False
    releasing = False  # a command that releases the target was started

    unclear = False

    def go(self):
        pace = Pace(self) if (self.c.op, self.c.fault) == ('suspend', 'lie') else None
        try:
            ACTIONS[self.c.action](self)
        finally:
            self.unclear = pace.end() if pace else False
            self.end()
        self.unclear = self.unclear and bool(self.faults)
        return self


# Actions.

def suspend_for(run):
    run.inject('begin')
    p = run.gpreempt('suspend', run.target, '--for', '300ms', '--no-daemon')
    code = p.wait()
    run.exit_is_true(p, code, 'suspend --for')
    if code == 0 and not p.said('^held') and not p.said('ended'):
        run.false('suspend --for: exit 0 and never "held"')


def suspend_signal(run):
    run.inject('begin')
    p = run.gpreempt('suspend', run.target, '--no-daemon')
    if p.until_said('^held', HANG_S if run.hangs else COMMAND_LIMIT_S):
        time.sleep(0.1)
    p.signal(signal.SIGTERM)
    run.exit_is_true(p, p.wait(), 'suspend and SIGTERM')


def owner_and_resume(run, words, stop=False, kill=False, keeper=False):
    """A suspend in one process, resume in another. The fault is in both, but after the hold."""
    run.inject('begin')
    owner = run.gpreempt('suspend', run.target, '--no-daemon')
    if not owner.until_said('^held', HANG_S if run.hangs else COMMAND_LIMIT_S):
        owner.signal(signal.SIGTERM)
        owner.wait()
        return
    time.sleep(0.05)
    if stop:
        owner.signal(signal.SIGSTOP)
    if kill:
        owner.kill()
    if keeper:
        p = Program(run, [KEEPER, '--once'])
    else:
        p = run.gpreempt(*words)
    code = p.wait()
    if not keeper:
        run.exit_is_true(p, code, ' '.join(str(w) for w in words))
        run.judge_ps()
        if run.look()['held']:
            again = run.gpreempt(*words)
            run.exit_is_true(again, again.wait(), 'the second ' + words[0])
    # The driver resumes the queues of a dead owner as soon as it gets the target's mutex.
    elif code == 0:
        run.judge_undone(p, 'keeper --once: exit 0', 1 if 'mutex' in run.c.fault else 0.3)
    if stop:
        owner.signal(signal.SIGCONT)
    run.page.hang(False)
    if not kill:
        wait_until(owner.ended, 3)
        owner.signal(signal.SIGTERM)
        run.exit_is_true(owner, owner.wait(), 'the owner')


def suspend_resume(run):
    owner_and_resume(run, ('resume', run.target, '--no-daemon'))


def suspend_resume_all(run):
    owner_and_resume(run, ('resume', '--all', '--no-daemon'))


def stopped_resume(run):
    owner_and_resume(run, ('resume', run.target, '--no-daemon'), stop=True)


def killed_resume(run):
    owner_and_resume(run, ('resume', '--all', '--no-daemon'), kill=True)


def killed_keeper(run):
    owner_and_resume(run, (), kill=True, keeper=True)


def library(run):
    run.inject('begin')
    p = Program(run, [HOLDER, str(run.target), 'wait'], stdin=subprocess.PIPE)
    p.until_said('^held', HANG_S if run.hangs else COMMAND_LIMIT_S)
    p.process.stdin.close()  # it releases the target and ends; nothing says so
    p.wait()


def daemon_suspend_for(run):
    run.inject('begin')
    if not run.start_daemon(events=True):
        return
    p = run.gpreempt('suspend', run.target, '--for', '300ms')
    if p.until_said('^held', HANG_S if run.hangs else COMMAND_LIMIT_S):
        run.judge_ps()
    code = p.wait()
    run.exit_is_true(p, code, 'suspend --for by the daemon')
    run.judge_ps()


def daemon_suspend_resume(run):
    run.inject('begin')
    if not run.start_daemon(events=True):
        return
    p = run.gpreempt('suspend', run.target)
    code = p.wait()
    if code == 0:
        run.judge_ps()
    run.inject('after')
    for words in (('resume', run.target), ('resume', '--all')):
        p = run.gpreempt(*words)
        code = p.wait()
        run.exit_is_true(p, code, words[0])
    run.judge_ps()


def daemon_ready(run):
    run.inject('begin')
    if not run.start_daemon(wait=False):
        return
    run.gpreempt('set', run.target, '--class', 'be').wait()
    run.gpreempt('suspend', run.target, '--for', '100ms').wait()


def daemon_class(run):
    run.inject('begin')
    if not run.start_daemon():
        return
    said = run.gpreempt('set', run.target, '--class', 'be')
    said.wait()
    run.gpreempt('set', run.service, '--class', 'lc').wait()
    sampler = Sampler(run)
    time.sleep(0.6)
    task = run.ps() or {}
    if said.said('in force') and task.get('class', 'be') != 'be':
        run.false('set says "%s", and ps has class %s' % (said.text(), task['class']))
    held = sampler.end()
    run.trace('seen held %d times; ps: preemptions %s, held_ns %s, failures %s' % (
        held, task.get('preemptions'), task.get('held_ns'), task.get('failures')))
    for name in ('preemptions', 'held_ns'):
        if task.get(name) and not held and run.emulator.name == 'amd':
            run.false('ps counts %s = %d, and it was never held' % (name, task[name]))
    judge_daemon_counts(run, held > 0)
    p = run.gpreempt('set', run.target, '--class', 'unmanaged')
    if p.wait() == 0 and not wait_until(lambda: not run.look()['held'], 0.5):
        run.false('set --class unmanaged: exit 0, and %s' % run.describe())


def judge_daemon_counts(run, held_lately):
    """stats and top beside the class rule; the driver counts holds on AMD GPUs."""
    run.judge_state('top', lambda: run.task((run.answer('top', '--json', '--every', '100ms') or {}).get('tasks')),
                    held_lately)
    holds = run.look().get('holds')
    stats = run.answer('stats', '--json', '--for', '50ms')
    if not stats or 'devices' not in stats:
        return
    counted = stats['devices'][0]['stats']['holds']
    really = run.look().get('holds', 0) - run.first.get('holds', 0)
    run.trace('stats: %d holds; the driver held %d queues' % (counted, really))
    # A driver that only says that it resumes leaves the task held: it is held after each hold, as is said.
    if run.c.op.startswith('resume') and 'lie' in run.c.fault:
        return
    if holds is not None and counted > really:
        run.false('stats counts %d holds, and the driver held %d queues' % (counted, really))


def daemon_end(run):
    run.inject('begin')
    if not run.start_daemon():
        return
    run.gpreempt('suspend', run.target).wait()
    run.daemon.signal(signal.SIGTERM)
    code = run.daemon.wait(20)
    run.exit_is_true(run.daemon, code, 'gpreemptd')


def daemon_killed(run):
    run.inject('begin')
    if not run.start_daemon():
        return
    run.gpreempt('suspend', run.target).wait()
    time.sleep(0.05)
    run.daemon.kill()
    time.sleep(0.5)
    if run.keeper.said('undone'):
        run.judge_undone(run.keeper, 'the keeper says undone', 0.5)
    d = run.gpreempt('doctor')
    d.wait()


def daemon_stopped(run):
    run.inject('begin')
    if not run.start_daemon():
        return
    run.gpreempt('suspend', run.target).wait()
    run.daemon.signal(signal.SIGSTOP)
    if run.hangs:
        time.sleep(HANG_S)
        run.page.hang(False)
    if run.keeper.until_said('undone', 3):
        run.judge_undone(run.keeper, 'the keeper says undone', 1)
    run.daemon.signal(signal.SIGCONT)
    run.gpreempt('resume', run.target).wait()


class Pace(threading.Thread):
    """The longest time for which the target did nothing, because the machine is busy. A driver that
    pretends to suspend cannot be told from one that does while the target does nothing."""
    LONG_S = 0.010

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_, self.longest, self.over = run, 0, False
        self.start()

    def run(self):
        done, since = 0, time.monotonic()
        while not self.over:
            now, is_ = time.monotonic(), self.run_.look()['done']
            self.longest = max(self.longest, now - since)
            if is_ != done:
                done, since = is_, now
            time.sleep(0.002)

    def end(self):
        self.over = True
        self.join()
        return self.longest > self.LONG_S


class Sampler:
    """Looks all the time whether the target is held."""

    def __init__(self, run):
        self.run, self.held, self.over = run, 0, False
        self.gap_s = 0.0  # the longest time without a look
        self.slices = set()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def sample(self):
        last = time.monotonic()
        while not self.over:
            look = self.run.look()
            now = time.monotonic()
            self.gap_s, last = max(self.gap_s, now - last), now
            self.held += look['held'] > 0
            self.slices.update(self.run.all_slices() or ())  # the report counts those of both programs
            time.sleep(0.002)

    def end(self):
        self.over = True
        self.thread.join()
        look = self.run.look()  # a hold may be shorter than the time between two looks
        self.held += look.get('holds', 0) - self.run.first.get('holds', 0)
        return self.held


def schedule(run, *policy):
    run.inject('begin')
    sampler = Sampler(run)
    p = run.gpreempt('schedule', '--be' if policy else '--lc', run.service, '--be', run.target, '--for', '700ms',
                     '--json', *policy)
    code = p.wait()
    run.exit_is_true(p, code, 'schedule')
    really = sampler.end()
    run.trace('seen held %d times' % really)
    try:
        report = json.loads(p.text()[p.text().index('[{"device'):])
    except ValueError:
        return
    judge_schedule(run, report, sampler, code)


def schedule_rr(run):
    schedule(run, '--policy', 'rr:quantum=30000')


def judge_schedule(run, report, sampler, code):
    """Only where it was never seen held: a sampler may miss short holds, but not all of them,
    unless the machine kept it from looking."""
    if sampler.gap_s > SAMPLER_GAP_S:
        run.trace('%.2f s without a look: not judged' % sampler.gap_s)
        return
    if len(sampler.slices) == 1 and report[0]['slices']:
        run.false('schedule counts slices = %d, and its slice was never changed' % report[0]['slices'])
    if sampler.held:
        return
    for device in report:
        task = next((t for t in device['tasks'] if t['pid'] == run.target), {})
        run.trace('schedule: holds %s, of it preemptions %s, held_ns %s, failures %s' % (
            device['holds'], task.get('preemptions'), task.get('held_ns'), device['failures']))
        both = run.c.action == 'schedule-rr'  # holds the service as well
        for name, value in (('holds', 0 if both else device['holds']), ('preemptions', task.get('preemptions')),
                            ('held_ns', task.get('held_ns'))):
            if value:
                run.false('schedule counts %s = %d, and it was never held' % (name, value))
        if code == 0 and not (both and device['holds']) and \
                (device['holds'] or (run.emulator.name == 'amd' and device['failures'])):
            run.false('schedule: exit 0, and nothing could be held')


def bench(run):
    run.inject('begin')
    before = run.look()
    p = run.gpreempt('bench', run.target, '-n', '5', '--hold-ms', '20', '--json')
    code = p.wait()
    run.exit_is_true(p, code, 'bench')
    try:
        report = json.loads(p.text()[p.text().index('{'):])
    except ValueError:
        return
    really = run.look().get('holds')
    done = report['hold']['done']
    run.trace('bench: hold %s release %s' % (report['hold'].get('done'), report['release'].get('done')))
    released = report['release']['done']
    if really is not None and min(done, released) * before['queues'] > really - before['holds']:
        run.false('bench counts %d holds and %d releases of %d queues, and the driver held %d queues' %
                  (done, released, before['queues'], really - before['holds']))


def suspend_long(run):
    """A hold that the driver confirms and has not made is told by the work of the target."""
    run.inject('begin')
    p = run.gpreempt('suspend', run.target, '--for', '%.1fs' % (CORRECT_S + 1), '--no-daemon')
    if p.until_said('^held') and not run.look()['held'] and not p.until_said('ran again', CORRECT_S):
        run.false('suspend says "held", and does not correct it')
    run.exit_is_true(p, p.wait(), 'suspend --for')


def daemon_long(run):
    run.inject('begin')
    if not run.start_daemon():
        return
    if run.gpreempt('suspend', run.target).wait() == 0:
        if not run.look()['held'] and not wait_until(
                lambda: (run.ps() or {}).get('state') != 'suspended', CORRECT_S, 0.1):
            run.false('ps says suspended, and does not correct it: ' + run.describe())
    run.gpreempt('resume', run.target).wait()


def monitor(run):
    run.inject('begin')
    p = run.gpreempt('monitor', run.target, '--for', '300ms', '--closely')
    p.wait()
    if p.said('ready'):
        run.false('monitor says "ready", and has not tried a hold')


def show(run):
    run.inject('begin')
    for words in (('queues', run.target), ('ps', '--for', '50ms'), ('doctor',)):
        run.gpreempt(*words).wait()
    run.judge_ps()


def end_of_target(run, number, daemon):
    """The target ends by SIGKILL, or executes another program at SIGUSR1, while it is held."""
    survivor = run.target
    victim = run.emulator.start_program(run.emulator.load_options[0])
    run.target = victim.pid
    run.first = run.look()
    run.inject('begin')
    if daemon and not run.start_daemon():
        run.false('the daemon does not start')
    p = run.gpreempt('suspend', run.target, *['--no-daemon'] * (not daemon))
    p.until_said('^held', HANG_S if run.hangs else COMMAND_LIMIT_S)
    victim.send_signal(number)
    if not run.hangs and not wait_until(lambda: not run.look()['queues'], 5):  # a call that hangs keeps its file
        run.false('the end of the target makes no progress')
    p.wait()
    run.gpreempt('resume', run.target).wait()
    run.heal()
    if not wait_until(lambda: not run.knows_target(number != signal.SIGKILL), 2 * BACK_S, 0.1):
        run.false('after its end a record of the target stays, or ps lists it')
    if number != signal.SIGKILL and not wait_until(lambda: is_free(victim.pid), 2):
        run.false('the new program is traced or stopped')
    victim.kill()
    victim.wait()
    run.target = survivor


def is_free(pid):
    """It runs, and no process traces it."""
    with open('/proc/%d/status' % pid) as f:
        text = f.read()
    return re.search(r'^TracerPid:\t0$', text, re.M) and not re.search(r'^State:\t[tT]', text, re.M)


def target_dies(run):
    end_of_target(run, signal.SIGKILL, False)


def target_execs(run):
    end_of_target(run, signal.SIGUSR1, False)


def daemon_target_dies(run):
    end_of_target(run, signal.SIGKILL, True)


def daemon_target_execs(run):
    end_of_target(run, signal.SIGUSR1, True)


def daemon_gang(run):
    """A user's hold of one member covers the other, and a hold that fails covers none."""
    run.inject('begin')
    if not run.start_daemon():
        return
    for pid in (run.target, run.service):
        run.gpreempt('set', pid, '--class', 'be', '--gang', 'both').wait()
    if run.gpreempt('suspend', run.target).wait() == 0:
        if run.c.op in ('resume', 'release') and not wait_until(lambda: run.is_held(run.service), 2):
            run.false('the other member of the gang is not held')
    else:
        run.heal()
        time.sleep(1.2)  # a hold that is still wanted is tried again after 1 s at most
        if not wait_until(lambda: not run.emulator.look(run.service)['held'], 2):
            run.false('suspend fails, and the other member of the gang stays held')
    p = run.gpreempt('resume', run.target)
    run.exit_is_true(p, p.wait(), 'resume')


def doctor(run):
    run.inject('begin')
    p = run.gpreempt('doctor')
    code = p.wait()
    # Whether the driver reads a hold back can only be found out by a hold.
    if code == 0 and p.said('^ready') and run.page.applied() and run.c.op != 'channel_state':
        s = run.gpreempt('suspend', run.target, '--for', '200ms', '--no-daemon')
        if s.wait() != 0:
            run.false('doctor says ready, and suspend fails: %s' % s.text())


ACTIONS = {
    'suspend-for': suspend_for,
    'suspend-signal': suspend_signal,
    'suspend-resume': suspend_resume,
    'suspend-resume-all': suspend_resume_all,
    'stopped-resume': stopped_resume,
    'killed-resume': killed_resume,
    'killed-keeper': killed_keeper,
    'library': library,
    'daemon-for': daemon_suspend_for,
    'daemon-resume': daemon_suspend_resume,
    'daemon-class': daemon_class,
    'daemon-ready': daemon_ready,
    'daemon-end': daemon_end,
    'daemon-killed': daemon_killed,
    'daemon-stopped': daemon_stopped,
    'schedule': schedule,
    'schedule-rr': schedule_rr,
    'bench': bench,
    'dies': target_dies,
    'execs': target_execs,
    'daemon-dies': daemon_target_dies,
    'daemon-execs': daemon_target_execs,
    'daemon-gang': daemon_gang,
    'suspend-long': suspend_long,
    'daemon-long': daemon_long,
    'monitor': monitor,
    'show': show,
    'doctor': doctor,
}


# Combinations.

class Combination:
    """WHEN: N, N+, %N from the beginning; held, held1: from the moment when it is held."""

    def __init__(self, vendor, action, op, fault, when, heal=()):
        self.vendor, self.action, self.op, self.fault, self.heal = vendor, action, op, fault, heal
        self.phase = 'held' if when.startswith('held') else 'begin'
        self.times = {'held': '1+', 'held1': '1'}.get(when, when)
        self.name = '%s/%s/%s:%s@%s' % (vendor, action, op, fault.replace(' ', '='), when)


EPERM, ESRCH, EINTR, EIO, ENXIO, EAGAIN, ENOMEM, EBUSY, ENODEV, EINVAL, ETIMEDOUT = \
    1, 3, 4, 5, 6, 11, 12, 16, 19, 22, 110
INVALID, ERROR = '0x80000000', '0x40000000'


def errnos(*codes):
    return ['errno %d' % c for c in codes]


AMD_CHANGE = (errnos(EIO, EINVAL, EPERM, ESRCH, EBUSY, EINTR, EAGAIN, ENOMEM) +
              ['do_errno %d' % EIO, 'do_errno %d' % EINTR, 'lie', 'lie_zero', 'half_lie', 'count 0', 'count -1', 'count +1',
               'count 100000000', 'bits ' + INVALID, 'bits ' + ERROR, 'half_bits ' + INVALID, 'half_bits ' + ERROR,
               'lie_bits ' + INVALID, 'lie_bits ' + ERROR, 'hang'])
AMD_FAULTS = {
    'suspend': AMD_CHANGE,
    'resume': AMD_CHANGE,
    'enable': errnos(EIO, EINVAL, EPERM, ESRCH, EBUSY, EINTR, EAGAIN, ENODEV) +
              ['do_errno %d' % EIO, 'do_errno %d' % EINTR, 'lie', 'hang'],
    'disable': errnos(EIO, EINVAL, EPERM, ESRCH, EBUSY, EINTR) + ['do_errno %d' % EIO, 'lie', 'hang'],
    'queue_snapshot': errnos(EIO, EINVAL, EPERM, ESRCH, EINTR, ENOMEM) +
                      ['do_errno %d' % EIO, 'lie', 'num 0', 'num 1', 'num +1', 'num 1025', 'num 100000000',
                       'entry 0', 'entry 8', 'entry 4096', 'wrong_type 1', 'wrong_type 3', 'wrong_gpu 1', 'hang'],
    'version': errnos(EIO, EINTR) + ['lie', 'version 0.0', 'version 1.12', 'version 2.0'],
    'query_event': errnos(EIO, EINTR, EPERM) + ['lie', 'hang'],
    'smi_events': errnos(EIO, EINTR, ENODEV) + ['lie'],
    'ptrace_seize': errnos(EPERM, ESRCH) + ['lie'],
    'ptrace_interrupt': errnos(ESRCH, EIO) + ['lie'],
    'ptrace_detach': errnos(ESRCH) + ['lie'],  # only once: see combinations()
}
AMD_EMU = [('reset_counts', ()), ('preempt_timeout 1', ()), ('preempt_timeout 3', ()), ('preempt_timeout 1000', ()),
           ('evict PID', ('restore PID',)),
           # The driver never restores a process after a reset. Here they are, to see that gpreempt does not hold them.
           ('reset 0 begin', ('reset 0 end', 'restore PID', 'restore SERVICE')), ('hold_mutex PID 500ms', ())]

NV_BUSY, NV_LOST, NV_PERMISSION, NV_CHANNEL, NV_CLIENT, NV_HANDLE, NV_STATE, NV_FOUND, NV_TIMEOUT = \
    0x03, 0x0f, 0x1b, 0x21, 0x23, 0x33, 0x40, 0x57, 0x65


def statuses(*codes):
    return ['status 0x%x' % c for c in codes]


NV_CHANGE = (errnos(EIO, EPERM, EINTR, EAGAIN, ENODEV) +
             statuses(NV_BUSY, NV_LOST, NV_PERMISSION, NV_CHANNEL, NV_CLIENT, NV_HANDLE, NV_STATE, NV_TIMEOUT) +
             ['do_errno %d' % EIO, 'do_status 0x%x' % NV_TIMEOUT, 'lie', 'hang'])
NV_HALVES = ['half_lie 0', 'half_lie 1']
NV_READ = errnos(EIO, EINTR) + statuses(NV_BUSY, NV_LOST, NV_HANDLE, NV_CLIENT, NV_TIMEOUT, 0x56) + ['lie', 'hang']
NVIDIA_FAULTS = {
    'hold': NV_CHANGE + NV_HALVES,
    'release': NV_CHANGE + NV_HALVES,
    'set_slice': NV_CHANGE,
    'get_slice': NV_READ + ['value 0', 'value 1', 'value 1000000'],
    'channel_state': NV_READ + ['value 0', 'value 1'],
    'group_info': NV_READ + ['value 77'],
    'handle_info': NV_READ + ['value 0', 'value 41068'],
    'child_handle': NV_READ + ['value 0', 'value 1'],
    'group_ids': NV_READ + ['value 0', 'value 1000000'],
    'pids': NV_READ + ['value 0', 'value 950', 'value 100000'],
    'attached_ids': NV_READ,
    'probed_ids': NV_READ,
    'id_info': NV_READ,
    'alloc': NV_READ,
    'free': NV_READ,
}
NVIDIA_EMU = [('reset_counts', ()), ('ignore disable 1', ()), ('ignore disable 1000', ()), ('lost 0', None)]

CLI = ['suspend-for', 'suspend-signal', 'suspend-resume', 'suspend-resume-all', 'stopped-resume', 'killed-resume',
       'killed-keeper', 'library', 'schedule', 'schedule-rr', 'bench']
DAEMON = ['daemon-for', 'daemon-resume', 'daemon-class', 'daemon-end', 'daemon-killed', 'daemon-stopped']
SHOW = ['monitor', 'show', 'doctor']
ENDS = ['dies', 'execs', 'daemon-dies', 'daemon-execs', 'daemon-gang']  # of the target; and gangs


# Several faults at a time: lists of faults of one operation each. A release that fails ends the
# session, which fails as well; and the driver denies afterwards that there is one.
TOGETHER = {'amd': [{'resume': ['errno %d' % EIO, 'lie', 'bits ' + ERROR],
                     'disable': ['errno %d' % EIO, 'errno %d' % EPERM, 'lie', 'do_errno %d' % EIO]},
                    {'resume': ['errno %d' % EIO, 'lie'], 'disable': ['errno %d' % EINVAL, 'lie'],
                     'queue_snapshot': ['errno %d' % EINVAL]},
                    {'disable': ['errno %d' % EINVAL, 'lie'], 'queue_snapshot': ['errno %d' % EINVAL]}],
            'nvidia': []}
FAULTS = {'amd': AMD_FAULTS, 'nvidia': NVIDIA_FAULTS}

# NVIDIA: two calls at a time. The driver does nothing, and does not tell the state, or tells what agrees.
NV_AGREE = [('hold+channel_state', 'lie;value 0'), ('release+channel_state', 'lie;value 1')]
NV_UNTOLD = [(op + '+channel_state', fault + ';status 0x56')
             for op in ('hold', 'release') for fault in ('lie', 'half_lie 0', 'half_lie 1', 'do_status 0x65')]
NV_VANISH = [('handle_info+group_info', 'status 0x57;status 0x57'), ('handle_info+pids', 'status 0x33;value 0')]


def nvidia_pairs():
    for op, fault in NV_AGREE + NV_UNTOLD + NV_VANISH:
        long = ['suspend-long', 'daemon-long'] if (op, fault) == NV_AGREE[0] else []
        for action in CLI + DAEMON + long:
            for when in ('1+',) if action in NO_HOLD else ('1+', 'held'):
                if when == 'held' and op.startswith('hold'):
                    continue
                yield Combination('nvidia', action, op, fault, when)

NO_HOLD = ['schedule', 'schedule-rr', 'bench', 'daemon-class'] + SHOW  # no moment when it is surely held


def probes(vendor):
    """Which operations an action calls with an honest driver, from its beginning and after the hold."""
    for action in CLI + DAEMON + ENDS + SHOW:
        for when in ('1',) if action in NO_HOLD else ('1', 'held'):
            yield Combination(vendor, action, 'probe', 'none', when)


def unreached(vendor):
    """What `hostile.py --probe` found: a fault in these calls would be none. (action, phase, operation)"""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), vendor + '.unreached')
    if not os.path.exists(path):
        return set()
    return {(words[0], words[1], op) for words in map(str.split, read_names(path)) for op in words[2:]}


def combinations(vendor):
    skip = unreached(vendor)
    for c in all_combinations(vendor):
        if (c.action, c.phase, c.op.split('+')[0]) not in skip:
            yield c


def all_combinations(vendor):
    faults, emu = (AMD_FAULTS, AMD_EMU) if vendor == 'amd' else (NVIDIA_FAULTS, NVIDIA_EMU)
    changes = ('suspend', 'resume', 'enable', 'disable', 'queue_snapshot', 'hold', 'release', 'set_slice')
    for op, list_ in faults.items():
        for fault in list_:
            whens = ['1', '2', '1+', '2+', 'held', 'held1'] if op in changes else ['1', '1+', 'held']
            # ptrace() is not the driver. If it never detached, the tracee would stay stopped.
            if op == 'ptrace_detach':
                whens = ['1', 'held1']
            for action in CLI + DAEMON:
                for when in whens:
                    if when.startswith('held') and action in NO_HOLD:
                        continue
                    yield Combination(vendor, action, op, fault, when)
            for action in SHOW:
                for when in ('1', '1+'):
                    yield Combination(vendor, action, op, fault, when)
            for action in ENDS:
                for when in ('1+', 'held') if op in changes else ('1+',):
                    yield Combination(vendor, action, op, fault, when)
    for lists in TOGETHER[vendor]:
        for action in CLI + DAEMON:
            whens = ['held'] * (action not in NO_HOLD) + ['1+'] * ('queue_snapshot' not in lists)
            for together, when in itertools.product(itertools.product(*lists.values()), whens):
                yield Combination(vendor, action, '+'.join(lists), ';'.join(together), when)
    if vendor == 'nvidia':
        yield from nvidia_pairs()
    # `reset_counts` is no fault: the driver is honest.
    for fault, heal in emu:
        if heal is None:
            continue
        # A target that ends or executes another program takes its eviction with it.
        ends = ['daemon-gang'] if fault.startswith(('reset 0', 'evict')) else ENDS
        for action in CLI + DAEMON + ends + SHOW + ['daemon-ready']:
            for when in ('1', 'held'):
                if when == 'held' and action in NO_HOLD:
                    continue
                yield Combination(vendor, action, 'emu', fault, when, heal)


def read_names(path):
    with open(path) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith('#')]


def open_findings(vendors):
    """Combinations that are known to fail: a random part leaves them out, a complete run does not."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.join(here, v + '.open') for v in vendors]
    return {name for path in paths if os.path.exists(path) for name in read_names(path)}


def choose(args):
    """The combinations of --only or --list-file, and --count others; without any of them all."""
    all_ = [c for v in args.vendor for c in (probes(v) if args.probe else combinations(v))]
    chosen = []
    if args.list_file:
        by_name = {c.name: c for v in args.vendor for c in all_combinations(v)}
        chosen = [by_name[n] for n in read_names(args.list_file) if n.split('/')[0] in args.vendor]
    elif args.only:
        chosen = [c for c in all_ if c.name == args.only] or [c for c in all_ if re.search(args.only, c.name)]
    elif not args.count:
        chosen = all_
    named = {c.name for c in chosen}
    if args.count:
        named |= open_findings(args.vendor)
    others = [c for c in all_ if c.name not in named]
    random.Random(args.seed).shuffle(others)
    return chosen + others[:args.count]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('vendor', nargs='*', help='amd, nvidia (default: both)')
    parser.add_argument('--seed', type=int, default=None)
    parser.add_argument('--count', type=int, default=0, help='so many combinations, chosen by the seed')
    parser.add_argument('--only', help='the combination of this name, or those that match this expression')
    parser.add_argument('--list-file', help='the combinations named in this file')
    parser.add_argument('--list', action='store_true', help='print the names of the combinations')
    parser.add_argument('--seconds', type=float, default=0, help='stop after this time')
    parser.add_argument('--jobs', type=int, default=1, help='so many combinations at a time, each on its own emulator')
    parser.add_argument('--progress', help='keep results in this file; a run of the same programs with it goes on')
    parser.add_argument('-v', '--verbose', action='store_true')
    parser.add_argument('--probe', action='store_true', help='print what VENDOR.unreached should contain')
    parser.add_argument('--worker', action='store_true', help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.vendor = args.vendor or ['amd', 'nvidia']
    if args.worker:
        return work(args)
    if args.seed is None:
        args.seed = int(os.environ.get('GPREEMPT_SEED') or random.SystemRandom().randrange(1 << 32))
    if args.only:
        args.vendor = [v for v in args.vendor if args.only.startswith(v + '/')] or args.vendor
    chosen = choose(args)
    if args.list:
        print('\n'.join(c.name for c in chosen))
        return 0
    if not (os.access('/dev/fuse', os.W_OK) and os.geteuid() == 0 and os.path.exists(SHIM)):
        print('the emulators need /dev/fuse and root')
        return 77
    for path in (GPREEMPT, GPREEMPTD, KEEPER):
        if not os.path.exists(path):
            print('%s is not built' % path)
            return 77
    return Runner(chosen, args).run()


# Workers: each has its own emulator, in its own pid and mount namespace.

def work(args):
    """Reads names of combinations, writes one line of JSON for each."""
    by_name = {c.name: c for v in args.vendor for c in list(all_combinations(v)) + list(probes(v))}
    emulator = None
    try:
        for line in sys.stdin:
            c = by_name[line.strip()]
            if emulator and (emulator.name != c.vendor or not emulator.alive()):
                emulator.stop()
                emulator = None
            emulator = emulator or {'amd': Amd, 'nvidia': Nvidia}[c.vendor]()
            for _ in range(UNCLEAR_TRIES):
                run = Run(emulator, c, args.verbose).go()
                if not run.unclear or run.stopped:
                    break
            if run.unclear and not run.stopped:
                run.faults = []
            result = {'name': c.name, 'unclear': run.unclear, 'false': run.faults, 'stopped': run.stopped, 'applied': run.applied,
                      'took': round(time.monotonic() - run.start, 1), 'called': run.called}
            if run.faults or run.stopped:
                result['log'] = run.log
                emulator.stop()
                emulator = None
            print(json.dumps(result), flush=True)
    finally:
        if emulator:
            emulator.stop()
    return 0


def die_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_worker(args):
    """In a pid and mount namespace of its own: other tests are not disturbed, and nothing is left. The
    namespace's first process is a shell, which waits for the orphans."""
    unshare = ['unshare', '--pid', '--fork', '--kill-child', '--mount', '--mount-proc']
    if not shutil.which('unshare') or subprocess.run(unshare + ['true'], stderr=subprocess.DEVNULL).returncode:
        unshare = []
    else:
        unshare += ['bash', '-c', '"$@"; exit $?', 'bash']
    words = unshare + [sys.executable, sys.argv[0], '--worker'] + ['-v'] * args.verbose + args.vendor
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            preexec_fn=die_with_parent)


def build_id():
    digest = hashlib.sha256()
    for path in (GPREEMPT, GPREEMPTD, KEEPER, HOLDER, SHIM, os.path.abspath(__file__)):
        with open(path, 'rb') as f:
            digest.update(f.read())
    return digest.hexdigest()[:16]


class Runner:
    """Gives combinations to workers, one thread for each worker, and adds up the results."""

    def __init__(self, chosen, args):
        self.args = args
        self.lock = threading.Lock()
        self.done = self.false = self.stopped = self.unused = self.unclear = self.code = 0
        self.end = time.monotonic() + args.seconds if args.seconds else None
        self.progress = None
        self.rows = {}  # (action, call): combinations, injected, false statements, left stopped
        self.left = chosen
        if args.progress:
            self.open_progress()
        print('seed %d, %d combinations%s' % (args.seed, len(self.left),
              ', %d are done' % self.done if self.done else ''), flush=True)
        self.left.reverse()

    def open_progress(self):
        """Results of other programs than these do not count."""
        self.build = build_id()
        self.progress = open(self.args.progress, 'a+')
        self.progress.seek(0)
        known = {c.name for c in self.left}
        done = set()
        for line in self.progress:
            result = json.loads(line)
            if result['name'] in known - done and result['build'] == self.build:
                done.add(result['name'])
                self.count(result)
        self.left = [c for c in self.left if c.name not in done]

    def count(self, result):
        self.done += 1
        self.false += len(result['false'])
        self.stopped += len(result['stopped'])
        self.unused += not result['applied']
        self.unclear += result['unclear']
        action, call = re.match(r'\w+/(.*)/(.*?):', result['name']).groups()
        row = self.rows.setdefault((action, call), [0, 0, 0, 0])
        for i, n in enumerate((1, bool(result['applied']), len(result['false']), len(result['stopped']))):
            row[i] += n

    def next(self):
        with self.lock:
            if not self.left or (self.end and time.monotonic() > self.end):
                return None
            return self.left.pop()

    def take(self, result):
        with self.lock:
            self.count(result)
            if self.args.probe:
                vendor, action, when = re.match(r'(\w+)/(.*)/probe:none@(\w+)', result['name']).groups()
                missed = [op for op in FAULTS[vendor] if op not in result['called']]
                print(' '.join([action, 'held' if when == 'held' else 'begin'] + missed), flush=True)
            if self.args.verbose or result['took'] > 8:
                print('%s: %.1f s' % (result['name'], result['took']), flush=True)
            if result['false'] or result['stopped']:
                stopped = ['LEFT STOPPED: ' + s for s in result['stopped']]
                print('%s\n  %s' % (result['name'], '\n  '.join(result['false'] + stopped)), flush=True)
                if not self.args.verbose:
                    print('    ' + '\n    '.join(result['log']), flush=True)
            if self.progress:
                self.progress.write(json.dumps(dict(result, build=self.build)) + '\n')
                self.progress.flush()

    def drive(self):
        worker = start_worker(self.args)
        while c := self.next():
            try:
                worker.stdin.write(c.name + '\n')
                worker.stdin.flush()
                line = worker.stdout.readline()
            except BrokenPipeError:
                line = ''
            if not line.startswith('{'):
                print('%s: the runner failed: %s' % (c.name, line), flush=True)
                self.code = 1
                break
            self.take(json.loads(line))
        worker.stdin.close()
        worker.wait()
        if worker.returncode:
            self.code = worker.returncode

    def run(self):
        threads = [threading.Thread(target=self.drive) for _ in range(max(1, min(self.args.jobs, len(self.left))))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if self.progress:
            print('%-20s %-18s %12s %9s %6s %8s' % ('action', 'call', 'combinations', 'injected', 'false', 'stopped'))
            for names, row in sorted(self.rows.items()):
                print('%-20s %-18s %12d %9d %6d %8d' % (*names, *row))
        print('seed %d: %d combinations (%d without effect on the calls made, %d not judged because the machine '
              'was busy), %d false statements, %d programs left stopped' % (
                  self.args.seed, self.done, self.unused, self.unclear, self.false, self.stopped))
        return 1 if self.false or self.stopped else self.code


if __name__ == '__main__':
    sys.exit(main())
