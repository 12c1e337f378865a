#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_svg.py FILE: checks that a picture is well-formed, nothing lies outside the page and no texts
overlap. Writes a summary as JSON, or an error and exit code 1."""
import json
import re
import sys
import unicodedata
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def fail(text):
    sys.exit(f"{sys.argv[1]}: {text}")


def box_of(element):
    """Left, top, right, bottom and content of a text, with the letter width of a common font."""
    size, text = float(element.get("font-size")), "".join(element.itertext())
    wide = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    width = wide * size * (0.58 if element.get("font-weight") == "bold" else 0.53)
    x, y = float(element.get("x")), float(element.get("y"))
    x -= {"middle": width / 2, "end": width}.get(element.get("text-anchor"), 0)
    return x, y - 0.75 * size, x + width, y + 0.2 * size, text


def check_texts(root, width, height):
    boxes = [box_of(element) for element in root.iter(SVG + "text")]
    for left, top, right, bottom, text in boxes:
        if not text.strip():
            fail("an empty text")
        if left < 0 or top < 0 or right > width or bottom > height:
            fail(f"'{text}' is not on the page")
    boxes.sort(key=lambda box: box[1])
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            if b[1] >= a[3]:
                break
            if a[0] < b[2] and b[0] < a[2]:
                fail(f"'{a[4]}' and '{b[4]}' overlap")
    return [box[4] for box in boxes]


def check_rectangles(root, width, height):
    fills = {}
    for element in root.iter(SVG + "rect"):
        if element.get("x") is None or element.get("height").endswith("%"):
            continue
        x, y, w, h = (float(element.get(k)) for k in ("x", "y", "width", "height"))
        if w < 0 or h < 0 or x < -0.5 or y < 0 or x + w > width + 0.5 or y + h > height:
            fail(f"a rectangle is not on the page: {element.attrib}")
        fills[element.get("fill")] = fills.get(element.get("fill"), 0) + 1
    return fills


def hidden_marks(root):
    """The number of marks that a mark of another line covers."""
    marks = []
    for element in root.iter(SVG + "path"):
        if element.get("d").endswith("z") and element.get("fill") not in ("none", "#ffffff", None):
            numbers = [float(n) for n in re.findall(r"-?[0-9.]+", element.get("d"))]
            middle = [(min(n) + max(n)) / 2 for n in (numbers[::2], numbers[1::2])]
            marks.append((*middle, element.get("fill")))
    return sum(
        any(abs(a[0] - b[0]) < 8 and abs(a[1] - b[1]) < 8 and a[2] != b[2] for b in marks[i + 1 :])
        for i, a in enumerate(marks)
    )


def main():
    root = ElementTree.parse(sys.argv[1]).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    summary = {"width": width, "height": height}
    summary["texts"] = check_texts(root, width, height)
    summary["fills"] = check_rectangles(root, width, height)
    lines = [e for e in root.iter(SVG + "path") if e.get("fill") == "none"]
    summary["strokes"] = sorted({e.get("stroke") for e in lines})
    summary["dashes"] = len({e.get("stroke-dasharray") for e in lines})
    summary["hidden_marks"] = hidden_marks(root)
    json.dump(summary, sys.stdout)


main()
