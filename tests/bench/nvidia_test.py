# SPDX-License-Identifier: Apache-2.0
"""bench/nvidia/run on a machine without a GPU.

    nvidia_test.py Report    reports read back, merged, judged and drawn; input that is damaged
    nvidia_test.py Runs      whole runs with fake programs: order, failures, nothing left behind
"""

import argparse
import contextlib
import copy
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BENCH = os.path.join(ROOT, "bench", "nvidia")
RESULTS = os.path.join(ROOT, "docs", "results")
sys.path.insert(0, BENCH)
sys.dont_write_bytecode = True

import trial
from cells import LcLoad
from loadlog import LoadLog, quantile
from process import Child, Failed, TimedOut
from report import Report as Data, read_into, to_json
from show import to_svg, to_table
from verdict import judge


_loader = importlib.machinery.SourceFileLoader("runner", f"{BENCH}/run")
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", _loader))
_loader.exec_module(runner)


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gp-bench-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_bench(self, *words, **env):
        return subprocess.run(
            [sys.executable, f"{BENCH}/run", *words], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, universal_newlines=True, env={**os.environ, **env}, timeout=120)

    def call_bench(self, *words):
        """The same without another process, which is faster."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = runner.main(words)
            except SystemExit as error:
                status = error.code
            except Failed as error:
                status = str(error)
        return argparse.Namespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())

    def read(self, name):
        with open(name if name.startswith("/") else self.path(name)) as file:
            return file.read()


class Report(Base):
    def setUp(self):
        super().setUp()
        self.original = json.loads(self.read(f"{RESULTS}/h200-2026-11-15.json"))

    def merge(self, *reports):
        """What the runner answers, and the verdicts by criterion; the JSON is in self.out."""
        files = []
        for number, report in enumerate(reports):
            files.append(self.path(f"{number}.json"))
            with open(files[-1], "w") as out:
                out.write(report if isinstance(report, str) else json.dumps(report))
        done = self.call_bench("--from-json", *files, "--json", self.path("out.json"))
        written = os.path.exists(self.path("out.json"))
        self.out = json.loads(self.read("out.json")) if written else None
        verdicts = {v["criterion"]: v["verdict"] for v in self.out["verdicts"]} if self.out else {}
        return done, verdicts

    def cell(self, report, name):
        return next(cell for cell in report["cells"] if cell["name"] == name)

    def arm(self, report, cell, name):
        return next(arm for arm in self.cell(report, cell)["arms"] if arm["arm"] == name)

    def test_every_result_file_gives_its_table_and_chart(self):
        files = [name for name in os.listdir(RESULTS) if name.endswith(".json")]
        self.assertTrue(files)
        for name in files:
            base = os.path.join(RESULTS, name[:-len(".json")])
            done = self.call_bench("--from-json", f"{base}.json", "--svg", self.path("a.svg"),
                                   "--json", self.path("a.json"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, self.read(f"{base}.txt"))
            self.assertEqual(self.read("a.svg"), self.read(f"{base}.svg"))
            self.assertEqual(json.loads(self.read("a.json")), json.loads(self.read(f"{base}.json")))

    def test_all_criteria_pass_and_each_can_fail(self):
        done, verdicts = self.merge(self.original)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(set(verdicts.values()), {"PASS"})
        worse = (("1a", "100us@3ms+long", "p99_added_us", 200.1),
                 ("1b", "100us@3ms+long", "p99_added_us", 500),
                 ("2a", "1ms@10ms+low", "lost_us_per_request", 1500),
                 ("2b", "100us@10ms+low", "lost_us_per_request", 480),
                 ("3a", "two", "be_share", 0.979), ("3b", "four", "be_share", 0.969),
                 ("3c", "two+idle", "be_share", 0.969),
                 ("3d", "100us@10ms+four", "p99_added_us", 201),
                 ("3e", "100us@10ms+four", "p99_added_us", 2000),
                 ("4a", "torch", "p99_us", 1100), ("4b", "torch", "be_share", 0.89),
                 ("4c", "torch", "p99_us", 2900), ("4d", "torch", "p99_us", 1960))
        for criterion, cell, key, value in worse:
            report = copy.deepcopy(self.original)
            self.arm(report, cell, "gpreempt")[key] = value
            done, verdicts = self.merge(report)
            self.assertEqual((done.returncode, verdicts[criterion]), (1, "FAIL"), criterion)
        report = copy.deepcopy(self.original)
        self.arm(report, "two", "default")["failures"] = 1
        done, verdicts = self.merge(report)
        self.assertEqual((done.returncode, verdicts["0"]), (1, "FAIL"))

    def test_few_requests_and_quick_runs_are_not_judged(self):
        report = copy.deepcopy(self.original)
        self.arm(report, "100us@3ms+long", "default")["requests"] = 1499
        done, verdicts = self.merge(report)
        self.assertEqual((done.returncode, verdicts["1a"]), (0, "not measured"))
        self.assertIn("too few requests, where it holds", done.stdout)
        report = copy.deepcopy(self.original)
        report["quick"] = True
        self.arm(report, "two", "gpreempt")["be_share"] = 0.5
        done, verdicts = self.merge(report)
        self.assertEqual(set(verdicts.values()), {"PASS", "not measured"})
        self.assertIn("where it does not hold", done.stdout)

    def test_parts_merge_and_an_older_arm_stays_unjudged(self):
        first, second = copy.deepcopy(self.original), copy.deepcopy(self.original)
        first["date"], second["date"] = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"
        for report, keep in ((first, ("torch", "two")), (second, ("torch",))):
            report["cells"] = [cell for cell in report["cells"] if cell["name"] in keep]
        second["cells"][0]["arms"] = [arm for arm in second["cells"][0]["arms"]
                                      if arm["arm"] != "mps"]
        self.cell(first, "torch")["notes"] = [{"note": "round 1, mps: text"},
                                              {"note": "round 1, default: text"}]
        done, verdicts = self.merge(first, second)
        self.assertEqual(done.returncode, 0)
        self.assertEqual([cell["name"] for cell in self.out["cells"]], ["two", "torch"])
        self.assertEqual(self.arm(self.out, "torch", "mps")["of"], first["date"])
        self.assertEqual(self.cell(self.out, "torch")["notes"], [{"note": "round 1, mps: text"}])
        self.assertEqual((verdicts["4c"], verdicts["4d"]), ("PASS", "not measured"))
        self.assertIn("(of 2026-01-01T00:00:00Z)", done.stdout)
        self.assertEqual(self.out["date"], f"{first['date']}; {second['date']}")

    def test_mps_that_cannot_keep_up_is_no_failure(self):
        report = copy.deepcopy(self.original)
        arm = self.arm(report, "torch", "mps")
        arm.update(failures=2, starved=2)
        done, verdicts = self.merge(report)
        self.assertEqual((done.returncode, verdicts["0"]), (0, "PASS"))
        self.assertIn("2 runs of mps could not keep up", done.stdout)
        del arm["starved"]  # as older reports, which have it in their notes
        self.cell(report, "torch")["notes"] = [{"note": f"round {n}, mps: lc did not end in time"}
                                               for n in (1, 2)]
        self.assertEqual(self.merge(report)[1]["0"], "PASS")
        self.cell(report, "torch")["notes"].pop()
        self.assertEqual(self.merge(report)[1]["0"], "FAIL")

    def test_files_that_are_no_reports_are_refused(self):
        text = json.dumps(self.original)
        for broken in ("", "{", text[:-20], "[]", "null", "3", '"text"', "{}", "[" * 100000,
                       '{"benchmark":"other","cells":[]}', '{"benchmark":"gpreempt-nvidia"}',
                       '{"benchmark":"gpreempt-nvidia","cells":{}}', "\0\1\2", text + "x"):
            done, _ = self.merge(broken)
            self.assertRegex(done.returncode, r"^.*0\.json is not a report of this benchmark")
            self.assertEqual((done.stdout, self.out), ("", None), broken[:40])
        done = self.run_bench("--from-json", self.path("0.json"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^bench: .*0\.json is not a report of this benchmark.*\n$")
        done = self.run_bench("--from-json", self.path("missing"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^bench: cannot read .*missing: No such file.*\n$")

    def test_values_of_another_type_count_as_unknown(self):
        """Each value of one cell is replaced by values of other types; nothing breaks."""
        report = copy.deepcopy(self.original)
        report["cells"] = [self.cell(report, "torch")]

        def places(value):
            for key in (value if isinstance(value, dict) else range(len(value))):
                yield value, key
                if isinstance(value[key], (dict, list)):
                    yield from places(value[key])

        for container, key in list(places(report)):
            if key == "benchmark" or container is report and key == "cells":
                continue
            former = container[key]
            for value in (None, "text", -1, 1e300, 10**400, True, [], {}, [None], float("nan")):
                container[key] = value
                with open(self.path("a.json"), "w") as out:
                    json.dump(report, out)
                data = Data()
                with contextlib.redirect_stderr(io.StringIO()):
                    read_into(data, self.path("a.json"))
                claims = judge(data)
                json.loads(to_json(data, claims))
                to_table(data, claims)
                to_svg(data)
            container[key] = former
        self.arm(report, "torch", "gpreempt")["p99_us"] = "800"
        _, verdicts = self.merge(report)
        self.assertEqual((verdicts["4a"], verdicts["4b"]), ("not measured", "PASS"))

    def test_a_cell_that_is_gone_is_named(self):
        report = copy.deepcopy(self.original)
        report["cells"][0]["name"] = "former"
        done, verdicts = self.merge(report)
        self.assertIn("there is no cell 'former' any more", done.stderr)
        self.assertEqual(verdicts["1a"], "not measured")

    def test_result_files_of_loads(self):
        def log(text):
            with open(self.path("load.log"), "w") as out:
                out.write(text)
            return LoadLog(self.path("load.log"))

        good = log("gpu X Y\nunknown line\ncheck ok 1\nwindow 150 350\nd 100\nd 200\nd 400\nend\n")
        self.assertEqual((good.gpu, good.right, good.from_ns, good.to_ns), ("X Y", True, 150, 350))
        self.assertEqual(good.work(150, 350), 1.25)
        self.assertEqual(good.work(0, 1000), 2)
        self.assertEqual(log("end\n").work(0, 10), 0)
        self.assertFalse(log("check mismatch\nend\n").right)
        self.assertFalse(log("check okay\nend\n").right)
        for bad in ("", "l 5\n", "l x\nend\n", "window 1\nend\n", "late\nend\n", "l 5\nen"):
            with self.assertRaises(Failed, msg=bad):
                log(bad)
        values = list(range(1, 101))
        self.assertEqual([quantile(values, share) for share in (0.5, 0.99, 0.999, 1)],
                         [50, 99, 100, 100])
        self.assertEqual((quantile([], 0.5), quantile([7], 0.001)), (0, 7))

    def test_options(self):
        for words, text in ((["--part", "none"], "invalid choice"),
                            (["--cells", "two,x"], "no cell 'x'"),
                            (["--arms", "fast"], "no arm 'fast'"), (["--rounds", "0"], "1 to 100"),
                            (["--rounds", "x"], "1 to 100"), (["file"], "'file' is not an option"),
                            (["--nothing"], "--nothing")):
            done = self.call_bench(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(text, done.stderr)
        done = self.call_bench("--list", "--part", "torch", "--cells", "two")
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()],
                         ["cell", "two", "--part", "torch", "--part", "all"])


class Runs(Base):
    def setUp(self):
        super().setUp()
        self.fake = self.path("fake")
        shutil.copy(f"{HERE}/fake_programs.py", self.fake)
        os.chmod(self.fake, stat.S_IRWXU)
        self.started = self.path("started")
        self.words = ["--torch", self.fake, "--python", sys.executable, "--mps-control", self.fake,
                      "--json", self.path("a.json")]
        self.env = {"GPREEMPT": self.fake, "LOAD": self.fake, "STARTED": self.started}

    def bench(self, *words, fake=""):
        done = self.run_bench(*self.words, *words, **self.env, FAKE=fake)
        self.nothing_runs()
        return done, json.loads(self.read("a.json"))

    def processes(self):
        """(pid, command line) of all processes that the runner has started."""
        lines = self.read("started").splitlines() if os.path.exists(self.started) else []
        return [(int(line.split()[0]), line) for line in lines]

    def own_folders(self):
        """The private folders of the runner, as far as they are still there."""
        found = re.findall(r"pipes=(/tmp/gpreempt-bench-\w+)/", self.read("started"))
        return [folder for folder in set(found) if os.path.exists(folder)]

    def nothing_runs(self):
        for pid, line in self.processes():
            self.assertFalse(os.path.exists(f"/proc/{pid}"), line)
        self.assertEqual(self.own_folders(), [])

    def test_a_cell_in_all_arms(self):
        done, report = self.bench("--quick", "--cells", "100us@3ms+long", "--svg",
                                  self.path("a.svg"), "--keep", self.path("kept"))
        self.assertEqual(done.returncode, 0, done.stderr)
        cell = report["cells"][0]
        arms = {arm["arm"]: arm for arm in cell["arms"]}
        self.assertEqual(list(arms), ["alone", "default", "mps", "gpreempt"])
        self.assertEqual([arm["requests"] for arm in arms.values()], [60] * 4)
        self.assertEqual([arm["runs"] for arm in arms.values()], [2, 1, 1, 1])
        self.assertEqual(arms["alone"]["p50_us"], 129)
        self.assertEqual(arms["gpreempt"]["p99_added_us"], 0)
        self.assertTrue(0.2 < arms["gpreempt"]["be_share"] < 5)
        self.assertEqual((report["gpu"], cell["kernel_us"]), ("FAKE GPU", 98))
        self.assertIn("QUICK", done.stdout)
        self.assertIn("<svg", self.read("a.svg"))
        self.assertTrue(any(name.endswith("-scheduler.out") for name in os.listdir(
            self.path("kept"))))
        lines = [line for _, line in self.processes()]
        # The second lc gets the length of the kernel that the first one found.
        lc = [re.search(r"--iterations (\d+)", line)[1] for line in lines if " lc " in line]
        self.assertEqual(lc, ["0", "77", "77", "77"])
        # MPS is in a directory of its own, is told to quit there, and only its arm joins it.
        own = r"pipes=/tmp/gpreempt-bench-\w+/mps priority=$"
        self.assertEqual([len(re.findall(rf"^\d+ {words} {own}", "\n".join(lines), re.M))
                          for words in ("-f", "server", "")], [1, 1, 1])
        self.assertEqual(sum("/none" in line for line in lines), 6)
        priorities = [line.split("priority=")[1] for line in lines if " lc " in line]
        self.assertEqual(sorted(priorities), ["", "", "", "0"])
        schedule = [line for line in lines if " schedule " in line]
        self.assertRegex(schedule[0], r"--lc \d+ --be \d+ --policy priority")

    def test_arms_take_turns_over_rounds(self):
        done, report = self.bench("--rounds", "2", "--cells", "two", "--arms",
                                  "alone,default,gpreempt", "--quick")
        self.assertEqual(report["rounds"], 1)  # --quick has one
        self.assertEqual([line.split(":")[0] for line in done.stderr.splitlines()],
                         [f"two, round 1, {what}" for what in ("be alone", "default", "gpreempt")])
        shares = {arm["arm"]: len(arm["be_share_each"]) for arm in report["cells"][0]["arms"]}
        self.assertEqual(shares, {"alone": 2, "default": 2, "gpreempt": 2})

    def test_torch_runs_with_the_other_program(self):
        done, report = self.bench("--quick", "--part", "torch", "--arms", "alone,default")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({line.split()[1] for _, line in self.processes()}, {"infer", "train"})

    def test_failures_are_noted_and_the_rest_goes_on(self):
        cases = (("wrong", "default", "WRONG RESULT: mismatch 1 wrong results"),
                 ("crash", "default", "lc ended with status 1: load: a CUDA error"),
                 ("short", "default", "lc answered 59 of 60 requests"),
                 ("scheduler", "gpreempt", "round 1, gpreempt: gpreempt ended with status 1"))
        for fake, arm, text in cases:
            done, report = self.bench("--quick", "--cells", "100us@3ms+low,100us@3ms+long",
                                      "--arms", arm, fake=fake)
            self.assertEqual(done.returncode, 1, fake)
            for cell in report["cells"]:
                self.assertIn(text, cell["notes"][0]["note"])
                self.assertEqual(cell["arms"][0]["failures"], 1)
                self.assertEqual(cell["arms"][0]["mismatches"], int(fake == "wrong"))
            self.assertEqual(report["verdicts"][0]["verdict"], "FAIL")

    def test_a_machine_without_a_gpu_is_skipped(self):
        done = self.run_bench(*self.words, "--quick", "--cells", "100us@3ms+low", **self.env,
                              FAKE="skip")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("skipped: lc ended with status 77: load: no GPU", done.stdout)
        self.nothing_runs()

    def test_programs_that_are_missing_are_named(self):
        for name in ("GPREEMPT", "LOAD"):
            done = self.run_bench("--quick", **{**self.env, name: self.path("none")})
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.splitlines()[-1], f"none cannot be run: set {name}")
        done = self.run_bench(*self.words[:-2], "--quick", "--cells", "two", "--arms", "default",
                              **{**self.env, "GPREEMPT": self.path("none")})
        self.assertEqual(done.returncode, 0, done.stderr)  # it is not needed

    def test_a_run_that_starves_lc_is_told_apart_from_a_wrong_one(self):
        setup = argparse.Namespace(load=self.fake, ready_timeout=20, own=self.folder,
                                   logs=self.folder, trials=0)
        lc = LcLoad("lc", 100, 3000)
        os.environ["FAKE"] = "starve"
        self.addCleanup(os.environ.pop, "FAKE")
        with mock.patch("trial.STARVED_AFTER_S", 0.3):
            one = trial.Trial("x", "default", lc, ("long",), 10, 0, 10, 0, 1)
            out = trial.run_trial(setup, one)
        self.assertEqual((out.error, out.starved, out.mismatched, out.skipped),
                         ("lc did not end in time", True, False, False))

    def test_a_child_that_ignores_sigterm_is_killed(self):
        child = Child("deaf", [sys.executable, "-c", "import signal, time\n"
                               "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                               "print('ready', flush=True)\ntime.sleep(60)"], self.path("deaf"))
        child.expect("ready", time.monotonic() + 20)
        with self.assertRaisesRegex(TimedOut, "deaf did not end within 0.2 s and was killed"):
            child.end(0.2)
        self.assertEqual(child.status, 128 + signal.SIGKILL)
        with self.assertRaisesRegex(Failed, "cannot start /none"):
            Child("none", ["/none"], self.path("none"))
        child = Child("false", ["false"], self.path("false"))
        with self.assertRaisesRegex(Failed, "false ended with status 1"):
            child.expect("ready", time.monotonic() + 20)
        child.end(1)

    def test_the_smaller_benchmarks(self):
        env = {**os.environ, **self.env, "SECONDS_EACH": "1", "WARMUP": "1", "SHOW": "1"}
        for script, words, line in (
                ("saturation", ["200"], r"statistics\n   200 qos           200      199 "),
                ("shares", ["one", "50 50", "rr", "--", "--", "--weight", "3"],
                 r"one                              50 50   \d\d\.\d   \d\d\.\d   together")):
            done = subprocess.run([sys.executable, f"{BENCH}/{script}", *words], env=env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  universal_newlines=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, line)
            self.nothing_runs()
        schedule = [line for _, line in self.processes() if " schedule " in line]
        for line, words in zip(schedule, (r"--policy priority --be \d+ --lc \d+ --priority 0 ",
                                          r"--policy qos .* --deadline 2ms --budget 100us ",
                                          r"--policy rr --be \d+ --be \d+ --weight 3 ")):
            self.assertRegex(line, words)

    def stop_during(self, number, role, *words):
        """Sends a signal while a process of that role runs; returns the exit status."""
        bench = subprocess.Popen([sys.executable, f"{BENCH}/run", *self.words, *words],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env={**os.environ, **self.env})
        deadline = time.monotonic() + 120
        while not any(f" {role} " in line for _, line in self.processes()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        bench.send_signal(number)
        return bench.wait(60)

    def test_a_signal_ends_every_process_and_keeps_the_report(self):
        for number, arms, role in ((signal.SIGINT, "alone,gpreempt", "schedule"),
                                   (signal.SIGTERM, "alone,mps", "server"),
                                   (signal.SIGHUP, "default", "lc")):
            status = self.stop_during(number, role, "--cells", "100us@10ms+low", "--quick",
                                      "--arms", arms)
            self.assertEqual(status, 128 + number)
            self.nothing_runs()
            os.unlink(self.started)
            if "alone" in arms:
                report = json.loads(self.read("a.json"))
                done = {arm["arm"]: arm["requests"] for arm in report["cells"][0]["arms"]}
                self.assertEqual(done, {"alone": 60})  # the run in progress is lost

    def test_kill_9_of_the_runner_leaves_no_process(self):
        self.stop_during(signal.SIGKILL, "schedule", "--cells", "two", "--arms", "gpreempt")
        deadline = time.monotonic() + 10
        while any(os.path.exists(f"/proc/{pid}") for pid, _ in self.processes()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        for folder in self.own_folders():  # which the runner could not remove
            shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
