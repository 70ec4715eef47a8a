# SPDX-License-Identifier: MIT
"""Judges notebooks with the tools of others: notebook_judge.py PROGRAM FOLDER FILE...

For each percent .lua: our .ipynb is valid and is the text that nbformat itself writes; Jupytext reads the same cells from the
.lua; what Jupytext writes of our .ipynb has the same cells for us; and .lua -> .ipynb -> .lua is identical. For each .html: no
active node for html.parser and lxml. Prints one line per fault, then "N judged, N faults".
"""
import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import jupytext
import lxml.html
import nbformat

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])
ACTIVE = set("""script iframe object embed applet form input button textarea select base link foreignobject audio video source
track frame frameset template portal animate set image marquee""".split())
ADDRESSES = {"href", "src", "action", "formaction", "xlink:href", "data", "poster", "srcset", "background", "ping", "srcdoc"}
faults = []


def convert(source, target):
    subprocess.run([PROGRAM, "convert", str(source), str(target)], check=True)
    return Path(target)


def cells(notebook, layout=False):
    hidden = set() if layout else {"lines_to_next_cell"}
    return [(c.cell_type, c.source, {k: v for k, v in c.metadata.items() if k not in hidden}) for c in notebook.cells]


def judge_notebook(name):
    lua = Path(name)
    ours = convert(lua, FOLDER / "ours.ipynb")
    notebook = nbformat.read(ours, as_version=4)
    nbformat.validate(notebook)
    if nbformat.writes(notebook) + "\n" != ours.read_text("utf-8"):
        faults.append(f"{name}: nbformat writes another text")
    if cells(notebook, True) != cells(jupytext.read(lua), True):
        faults.append(f"{name}: Jupytext reads other cells")
    if convert(ours, FOLDER / "back.lua").read_bytes() != lua.read_bytes():
        faults.append(f"{name}: not the same after .ipynb")
    theirs = FOLDER / "theirs.lua"
    theirs.write_text(jupytext.writes(notebook, "lua:percent"), "utf-8")
    again = nbformat.read(convert(theirs, FOLDER / "again.ipynb"), as_version=4)
    if cells(notebook) != cells(again):
        faults.append(f"{name}: other cells from what Jupytext writes")


def is_harmless(tag, attributes, value):
    value = re.sub(r"[\x00-\x20]", "", value or "").lower()
    if value.startswith("#"):
        return True
    if tag == "img":
        return re.match(r"data:image/(png|jpeg|gif|webp|svg\+xml);base64,[a-z0-9+/=]*$", value)
    if tag == "a" and value.startswith("data:application/octet-stream;base64,"):
        return "download" in attributes
    return tag == "a" and (re.match(r"https?:", value) or not re.match(r"[^/?#]*:", value)) and not value.startswith("//")


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.styles = [], 0

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.styles += tag == "style"
        if tag in ACTIVE:
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.found.append(f"{tag} {name}")
            elif name in ADDRESSES and not is_harmless(tag, attributes, value):
                self.found.append(f"{tag} {name}={value[:60]}")
            elif name not in ("alt", "download") and "url(" in (value or "").lower():
                if not re.match(r"url\(#[\w.:-]+\)$", value):
                    self.found.append(f"{tag} {name}={value[:60]}")

    def handle_decl(self, decl):
        if decl.lower() != "doctype html":
            self.found.append(decl)

    def handle_pi(self, data):
        self.found.append("<?" + data)

    def handle_comment(self, data):
        self.found.append("a comment")


def without_allowed_script(text):
    """The page without the one script, its last element, that the policy in its head allows by hash (reports of sweeps)."""
    policy = re.search(r"<meta http-equiv=\"Content-Security-Policy\" content=\"([^\"]*)\">", text[: text.find("</head>")])
    hashes = re.findall(r"'sha256-([\w+/]+=*)'", policy.group(1) if policy else "")
    start, end = text.rfind("<script>"), text.rfind("</script>\n</body></html>")
    script = text[start + len("<script>") : end]
    if start < 0 or end < start or [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()] != hashes:
        return text
    return text[:start] + text[end + len("</script>") :]


def judge_page(name):
    text = without_allowed_script(Path(name).read_text("utf-8"))
    reader = Reader()
    reader.feed(text)
    if reader.styles != (2 if Path(name).name.startswith("sweep") else 1):  # a sweep's plot has one of its own
        reader.found.append(f"{reader.styles} styles")
    for node in lxml.html.fromstring(text).iter():
        tag = node.tag if isinstance(node.tag, str) else "a comment"
        if tag.lower() in ACTIVE or tag == "a comment":
            reader.found.append("lxml: " + tag)
        reader.found += [f"lxml: {tag} {a}" for a in node.attrib if a.lower().startswith("on") or a.lower() == "style"]
    faults.extend(f"{name}: {fault}" for fault in reader.found)


for file in sys.argv[3:]:
    (judge_page if file.endswith(".html") else judge_notebook)(file)
print("\n".join(faults))
print(f"{len(sys.argv) - 3} judged, {len(faults)} faults")
