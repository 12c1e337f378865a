#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch pair: inference with a CUDA graph beside a training loop that saturates the GPU.

    torch_pair.py infer --period-us N --count N [--warmup N] [--seed N] --out FILE [--lock FILE]
    torch_pair.py train --out FILE [--lock FILE]

The handshake, the result file and the exit statuses are those of load.cu: "ready" on stdout, a
line on stdin to start, SIGTERM to end; 77 where there is no torch or no GPU for it.
"""

import argparse
import fcntl
import gc
import math
import signal
import sys
import time

EXIT_WRONG_RESULT = 3
EXIT_SKIPPED = 77

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"torch_pair: no PyTorch: {error}", file=sys.stderr)
    sys.exit(EXIT_SKIPPED)

EPISODE = 40  # training steps from the same start, with the same data
LOSS_TOLERANCE = 0.02  # of the loss; attention's backward pass adds in no fixed order

told_to_end = False


def on_term(_signal, _frame):
    global told_to_end
    told_to_end = True


class Lock:
    """Held while getting ready, so that no other load of the benchmark disturbs the reference."""

    def __init__(self, path):
        self.file = open(path, "a") if path else None

    def __enter__(self):
        if self.file:
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        if self.file:
            self.file.close()


def wait_for_go():
    print("ready", flush=True)
    # A line, or the end of the input when the runner has given up.
    return bool(sys.stdin.readline()) and not told_to_end


def write_log(path, head, mark, samples):
    with open(path, "w") as out:
        out.write(f"gpu {torch.cuda.get_device_name(0)}\n")
        out.writelines(f"{line}\n" for line in head)
        out.writelines(f"{mark} {ns}\n" for ns in samples)
        out.write("end\n")


# ---- inference ----


def encoder(width, heads, layers, dtype):
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, batch_first=True, device="cuda", dtype=dtype
    )
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


class Inference:
    """12 layers, fp16, batch 1, as one graph that also compares its output with the reference.

    The comparison is inside the graph: as work of its own after each request it would take the
    GPU from the others a second time.
    """

    def __init__(self):
        torch.manual_seed(1)
        if hasattr(torch.backends, "mha"):
            torch.backends.mha.set_fastpath_enabled(False)  # plain kernels, as training has
        self.model = encoder(768, 12, 12, torch.float16).eval()
        self.input = torch.randn(1, 128, 768, device="cuda", dtype=torch.float16)
        self.reference = torch.zeros_like(self.input)
        self.wrong = torch.zeros((), device="cuda", dtype=torch.int64)
        self.graph = torch.cuda.CUDAGraph()
        self._capture()

    def _forward(self):
        self.output = self.model(self.input)
        self.wrong += (
            self.output.view(torch.int16) != self.reference.view(torch.int16)
        ).sum()

    def _capture(self):
        with torch.no_grad():
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._forward()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            with torch.cuda.graph(self.graph):
                self._forward()
        for _ in range(200):  # until the clocks are up
            self.graph.replay()
        torch.cuda.synchronize()
        self.reference.copy_(self.output)
        self.wrong.zero_()
        torch.cuda.synchronize()

    def request(self):
        self.graph.replay()
        torch.cuda.synchronize()


def wait_until(at_ns):
    """Sleeps, and spins at the end, so that the sleep's own delay is no part of the rhythm."""
    left_ns = at_ns - 300_000 - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)
    while time.monotonic_ns() < at_ns and not told_to_end:
        pass


def jitters(seed, below):
    """The generator of load.cu: the same seed gives the same arrivals."""
    mask = (1 << 64) - 1
    state = seed * 2 + 1
    while True:
        state ^= state << 13 & mask
        state ^= state >> 7
        state ^= state << 17 & mask
        yield state % below if below else 0


def serve(model, options):
    period_ns = options.period_us * 1000
    jitter = jitters(options.seed, period_ns // 10)
    latencies, late = [], 0
    start_ns = done_ns = time.monotonic_ns() + 1_000_000
    served = 0
    while served < options.warmup + options.count and not told_to_end:
        due_ns = start_ns + served * period_ns + next(jitter)
        wait_until(due_ns)
        launch_ns = time.monotonic_ns()
        model.request()
        done_ns = time.monotonic_ns()
        served += 1
        if served > options.warmup:
            latencies.append(done_ns - launch_ns)
            late += launch_ns - due_ns > 100_000
    end_ns = start_ns + served * period_ns
    wait_until(end_ns)
    window = start_ns + min(served, options.warmup) * period_ns, max(done_ns, end_ns)
    return latencies, late, window


def own_time_ns(model):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(15):
        begin.record()
        model.graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return round(sorted(times)[7] * 1e6)


def infer(options):
    torch.cuda.init()
    with Lock(options.lock):
        model = Inference()
        own_ns = own_time_ns(model)
    latencies, late, window = [], 0, (0, 0)
    gc.disable()  # its pauses are not the GPU's
    if wait_for_go():
        latencies, late, window = serve(model, options)
    wrong = int(model.wrong.item())
    check = "ok" if wrong == 0 else f"mismatch {wrong} wrong values"
    head = [f"kernel_ns {own_ns}", f"late {late}", f"window {window[0]} {window[1]}"]
    write_log(options.out, head + [f"check {check}"], "l", latencies)
    return 0 if wrong == 0 else EXIT_WRONG_RESULT


# ---- training ----


class Training:
    """12 layers, bf16, in episodes that all begin at the same weights and see the same data.

    So the loss at the end of every episode must be the one of the first, which ran undisturbed.
    """

    def __init__(self):
        torch.manual_seed(2)
        self.model = encoder(1024, 16, 12, torch.bfloat16).train()
        self.batches = [
            torch.randn(16, 512, 1024, device="cuda", dtype=torch.bfloat16) for _ in range(4)
        ]
        self.parameters = list(self.model.parameters())
        self.first = [p.detach().clone() for p in self.parameters]
        self.optimizer = torch.optim.SGD(self.parameters, lr=1e-3, foreach=True)
        self.losses = []  # on the GPU: reading one would wait for it
        self.steps = 0

    def step(self):
        place = self.steps % EPISODE
        if place == 0:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.first)
        batch = self.batches[place % len(self.batches)]
        loss = (self.model(batch) - batch.roll(1, 1)).float().square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        if place == EPISODE - 1:
            self.losses.append(loss.detach())

    def verdict(self):
        losses = [float(loss) for loss in self.losses]
        if not all(math.isfinite(loss) for loss in losses):
            return f"mismatch a loss is not finite: {losses}"
        for loss in losses:
            if abs(loss - losses[0]) > LOSS_TOLERANCE * abs(losses[0]):
                return f"mismatch loss {loss:.6f} after {EPISODE} steps, not {losses[0]:.6f}"
        return f"ok {losses[0]:.6f} after {EPISODE} steps, {len(losses)} times"


def train_until_told(training):
    """Two steps in flight, as load.cu has kernels. Returns when each finished."""
    done_ns = []
    events = []
    while not told_to_end:
        training.step()
        event = torch.cuda.Event()
        event.record()
        events.append(event)
        if len(events) == 2:
            events.pop(0).synchronize()
            done_ns.append(time.monotonic_ns())
    for event in events:
        event.synchronize()
        done_ns.append(time.monotonic_ns())
    return done_ns


def train(options):
    torch.cuda.init()
    with Lock(options.lock):
        training = Training()
        for _ in range(EPISODE):
            training.step()
        torch.cuda.synchronize()
    done_ns = train_until_told(training) if wait_for_go() else []
    verdict = training.verdict()
    write_log(options.out, [f"check {verdict}"], "d", done_ns)
    return 0 if verdict.startswith("ok") else EXIT_WRONG_RESULT


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("role", choices=["infer", "train"])
    parser.add_argument("--out", required=True)
    parser.add_argument("--lock")
    parser.add_argument("--period-us", type=int, default=10_000)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch_pair: PyTorch finds no GPU", file=sys.stderr)
        return EXIT_SKIPPED
    signal.signal(signal.SIGTERM, on_term)
    return infer(options) if options.role == "infer" else train(options)


if __name__ == "__main__":
    sys.exit(main())
