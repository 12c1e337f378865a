# SPDX-License-Identifier: Apache-2.0
"""The report for people: a table as text, and a chart as SVG."""

import math
from xml.sax.saxutils import escape

# ---- table ----


def _column(value, width, digits=0):
    return "  " + ("-" if value is None else f"{value:.{digits}f}").rjust(width)


def _row(name, arm):
    runs, failed = arm.failures + arm.runs, arm.failures - arm.starved
    share = None if arm.be_share is None else 100 * arm.be_share
    line = f"  {name:<10}" + _column(arm.requests or None, 8)
    line += "".join(_column(value, 8) for value in (arm.p50_us, arm.p99_us, arm.max_us))
    line += _column(arm.p99_added_us, 9)
    line += _column(share, 8, 1) + _column(arm.lost_us_per_request, 8)
    if failed:
        line += f"  {failed} of {runs} runs failed"
    if arm.starved:
        line += f"  {arm.starved} of {runs} runs: lc did not end in time"
    return line + (f"  (of {arm.of})" if arm.of else "")


def to_table(report, claims):
    quick = ", QUICK: a smoke test, not a measurement" if report.quick else ""
    heads = (("", "", "p50", "p99", "max", "p99 added", "be, % of", "lost per"),
             ("arm", "requests", "us", "us", "us", "us", "alone", "req., us"))
    lines = [f"{report.gpu or 'unknown GPU'}, driver {report.driver or 'unknown'}, "
             f"{report.machine}, {report.date}{quick}", ""]
    for first, *rest in heads:
        lines.append(f"  {first:<10}" + "".join(
            "  " + word.rjust(9 if i == 4 else 8) for i, word in enumerate(rest)))
    for result in report.cells:
        lines.append(f"{result.cell.name} ({result.cell.about})")
        lines += ["  skipped"] if result.skipped else []
        lines += [_row(name, arm) for name, arm in result.arms.items()]
        lines += [f"  ! {note}" for note in result.notes]
    lines.append("")
    lines += [f"{c.verdict:<12}  {c.criterion:<2}  {c.says:<50}  {c.detail}" for c in claims]
    return "\n".join(lines) + "\n"


# ---- chart ----
# Per cell and arm a bar for the p99 on a log axis, and one for the best-effort work kept. Every
# bar has the name of its arm before it and its value behind it, and the arms differ in pattern and
# brightness: nothing depends on colour.

WIDTH = 1000
LEFT = 24
BARS = LEFT + 84  # x of the p99 bars, behind the names of the arms
BARS_WIDTH = 450  # their values need 70 more
SHARES = LEFT + 650  # x of the share bars
SHARES_WIDTH = 240  # to 100 %; their values need 60 more
TOP = 168  # below title, legend and axis
ROW = 19
BAR = 13
HEAD = 28  # the name of a cell, and the space above it

FILL = {"alone": "#fff", "default": "url(#dots)", "mps": "url(#hatch)", "gpreempt": "#0072b2"}
LEGEND = ((LEFT, "alone", "alone: nothing else on the GPU"),
          (LEFT + 260, "default", "default: the driver's sharing"),
          (LEFT + 510, "mps", "mps: with client priorities"),
          (LEFT + 740, "gpreempt", "gpreempt"))
ON_WHITE = {"stroke": "#fff", "stroke_width": 3, "paint_order": "stroke"}  # over grid lines


def _element(name, content=None, **attributes):
    """An element; underscores in names of attributes stand for hyphens."""
    text = "".join(f' {key.replace("_", "-")}="{v:.1f}"' if isinstance(v, float) else
                   f' {key.replace("_", "-")}="{v}"' for key, v in attributes.items())
    return f"<{name}{text}/>" if content is None else f"<{name}{text}>{content}</{name}>"


def _text(x, y, words, **attributes):
    return _element("text", escape(words), x=x, y=y, **attributes)


def _rect(x, y, width, fill):
    return _element("rect", x=x, y=y, width=width, height=BAR, fill=fill, stroke="#444")


def _grid_line(x, bottom, label):
    return _element("path", d=f"M{x} {TOP - 24}V{bottom}", stroke="#ccc") + _text(
        x, TOP - 30, label, font_size=11, text_anchor="middle", fill="#555")


def _pattern(name, size, shapes, **attributes):
    return _element("pattern", shapes, id=name, width=size, height=size,
                    patternUnits="userSpaceOnUse", **attributes)


def _bar(x, y, width, fill, value):
    return _rect(float(x), float(y), width, fill) + _text(x + width + 6, y + 11.0, value,
                                                          font_size=12, **ON_WHITE)


def _duration(us):
    if us < 999.5:
        return f"{us:.0f} us"
    return f"{us / 1e3:.2f} ms" if us < 9995 else f"{us / 1e3:.1f} ms"


def _shown(result):
    """Names of the arms with a row. Alone, best-effort work keeps 100 %: no bar for that."""
    return [name for name, arm in result.arms.items() if arm.requests or arm.failures
            or (arm.be_share is not None and name != "alone")]


def _axis(report):
    """Both ends of the p99 axis, as log10 of microseconds. It begins at a power of ten."""
    values = [arm.p99_us for result in report.cells for arm in result.arms.values()
              if arm.requests and arm.p99_us > 0]
    if not values:
        return 2, 4
    # 0.7: the shortest bar has a length, too.
    return math.floor(math.log10(min(values) * 0.7)), math.log10(max(values) * 1.02)


def _head(report, height):
    hatch = _element("rect", width=6, height=6, fill="#fff") + _element(
        "rect", width=2, height=6, fill="#777")
    dots = _element("rect", width=5, height=5, fill="#f0c36d") + _element(
        "circle", cx="2.5", cy="2.5", r=1, fill="#7a5a10")
    quick = ", QUICK: a smoke test" if report.quick else ""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13" fill="#222">',
        _element("defs", _pattern("hatch", 6, hatch, patternTransform="rotate(45)")
                 + _pattern("dots", 5, dots)),
        _element("rect", width="100%", height="100%", fill="#fff"),
        _text(LEFT, 30, "Response time (p99) of latency-critical work, and best-effort work kept",
              font_size=18, font_weight="bold"),
        _text(LEFT, 52, f"{report.gpu or 'unknown GPU'}, driver {report.driver or 'unknown'}"
              + quick, fill="#555")]


def _axes(low, high, bottom):
    lines = [_text(BARS, 118, "p99, log scale", font_weight="bold")
             + _text(SHARES, 118, "best-effort work kept, % of one alone", font_weight="bold")]
    for at in range(low, math.floor(high + 1e-9) + 1):
        label = f"{10 ** at:g} us" if at < 3 else f"{10 ** (at - 3):g} ms"
        x = f"{BARS + BARS_WIDTH * (at - low) / (high - low):.1f}"
        lines.append(_grid_line(x, bottom, label))
    for percent in (0, 50, 100):
        lines.append(_grid_line(SHARES + SHARES_WIDTH * percent // 100, bottom, str(percent)))
    return lines


def _chart_row(name, arm, low, high, y):
    lines = [_text(BARS - 8, y + 11, name, text_anchor="end", font_size=12)]
    if arm.requests:
        # A p99 of 0 has the shortest bar.
        part = (math.log10(arm.p99_us) - low) / (high - low) if arm.p99_us > 0 else 0
        value = _duration(arm.p99_us) + (", another run" if arm.of else "")
        lines.append(_bar(BARS, y, BARS_WIDTH * min(max(part, 0.002), 1), FILL[name], value))
    elif arm.failures:
        lines.append(_text(BARS + 6, y + 11, "did not end in time"
                           if arm.starved == arm.failures else "failed", font_size=12))
    if arm.be_share is not None and name != "alone":
        width = max(SHARES_WIDTH * min(arm.be_share, 1.05), 0.5)
        lines.append(_bar(SHARES, y, width, FILL[name], f"{100 * arm.be_share:.1f}"))
    return lines


def to_svg(report):
    low, high = _axis(report)
    y, rows = TOP, []
    for result in report.cells:
        names = _shown(result)
        if not names:
            continue
        rows.append(_text(LEFT, y + HEAD - 10, result.cell.about, font_weight="bold", **ON_WHITE))
        y += HEAD
        for name in names:
            rows += _chart_row(name, result.arms[name], low, high, y - 3)
            y += ROW
    legend = [_rect(x, 68, 22, FILL[arm]) + _text(x + 29, 80, words) for x, arm, words in LEGEND]
    return "\n".join(_head(report, y + 24) + legend + _axes(low, high, y + 4) + rows
                     + ["</svg>"]) + "\n"
