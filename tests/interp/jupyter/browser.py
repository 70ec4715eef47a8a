#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A tutorial in JupyterLab in a real browser: chromium without a window, driven through its debugging protocol.

usage: browser.py QUOLL [PICTURE.png]; run by kernel.sh, which provides the packages. The picture is of the last page.
"""
import asyncio
import base64
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import nbformat
from notebooks import from_percent, with_kernel
from tornado.websocket import websocket_connect

TUTORIAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tutorials/01_first_steps.lua")
QUOLL = os.path.abspath(sys.argv[1])
FOLDER = tempfile.mkdtemp(prefix="quoll-browser-")
TOKEN = secrets.token_hex(16)
os.environ.update(JUPYTER_DATA_DIR=FOLDER + "/data", JUPYTER_RUNTIME_DIR=FOLDER + "/run",
                  JUPYTER_CONFIG_DIR=FOLDER + "/config", JUPYTER_PLATFORM_DIRS="0")

CELLS = [
    ("markdown", "# Quoll in JupyterLab"),
    ("code", "local w = tensor{{0.5, -1.25, 2}, {3, 0.125, -0.75}}\nlocal q = w:quantize 'int4'\nq"),
    ("code", "print(q:dequantize())\nio.stderr:write 'a line of stderr\\n'"),
    ("code", "plot.line{{1, 4, 9, 16, 25}, title='squares', xlabel='n'}"),
    ("code", "quant.compare(w, {'int8', 'int4', 'binary'})"),
    ("code", "local function f(x) return x:nothing() end\nf(w)"),
    ("code", "jupyter.display('replaced', {id = 'one'})\njupyter.update('one', 'by this');"),
]


class Page:
    """One page of the browser."""

    def __init__(self, connection):
        self.connection, self.count = connection, 0

    async def call(self, method, **parameters):
        self.count += 1
        number = self.count
        await self.connection.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await asyncio.wait_for(self.connection.read_message(), 60))
            if answer.get("id") == number:
                return answer["result"]

    async def evaluate(self, expression):
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return answer["result"].get("value")

    async def until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if await self.evaluate(expression):
                return True
            await asyncio.sleep(0.3)
        return False


def write_notebooks():
    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    tags = {"tags": ["raises-exception"]}  # all cells are run, also those behind an error
    os.mkdir(FOLDER + "/books")
    nbformat.write(with_kernel([make[kind](text, metadata=tags) for kind, text in CELLS]), FOLDER + "/books/try.ipynb")
    nbformat.write(from_percent(TUTORIAL), FOLDER + "/books/tutorial.ipynb")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_server(port):
    log = open(FOLDER + "/server.log", "w")
    return subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1",
         f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={FOLDER}/books",
         "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=",
         "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"], stdout=log, stderr=log)


def start_browser():
    browser = subprocess.Popen(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
         "--window-size=1200,2000", f"--user-data-dir={FOLDER}/profile", "about:blank"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in browser.stderr:
        found = re.search(r"ws://([^/]+)/", line)
        if found:
            return browser, found.group(1)
    raise RuntimeError("chromium did not start")


def wait_for(url, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            time.sleep(0.3)
    raise RuntimeError("no answer: " + url)


RUN = """(async () => {
    window.finished = false;
    const app = window.jupyterapp;
    const panel = await app.commands.execute('docmanager:open',
        {path: 'NAME', factory: 'Notebook', kernel: {name: 'quoll'}});
    window.panel = panel; await panel.revealed; await panel.sessionContext.ready;
    app.shell.activateById(panel.id);
    await app.commands.execute('notebook:run-all-cells');
    window.finished = true;
})().catch(e => { window.finished = String(e); })"""
OUTPUTS = """Array.from(window.panel.node.querySelectorAll('.jp-CodeCell')).map(c =>
    Array.from(c.querySelectorAll('.jp-OutputArea-output')).map(o => [o.dataset.mimeType || o.className, o.innerText,
        o.querySelectorAll('svg, img').length, o.querySelectorAll('table').length]))"""

failed = passed = 0


def check(good, what, detail=""):
    global failed, passed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"failed: {what}: {detail}")


async def drive(port, address):
    pages = json.loads(wait_for(f"http://{address}/json/list"))
    page = Page(await websocket_connect([p for p in pages if p["type"] == "page"][0]["webSocketDebuggerUrl"],
                                        max_message_size=1 << 28))
    await page.call("Page.navigate", url=f"http://127.0.0.1:{port}/lab?token={TOKEN}&reset")
    started = await page.until("!!window.jupyterapp && window.jupyterapp.restored.then(() => true)", 120)
    check(started, "JupyterLab starts")
    tutorial = await run_notebook(page, "tutorial.ipynb")
    shown = [o for cell in tutorial for o in cell]
    check(len(shown) > 5, "the tutorial has outputs", shown)
    check(not [o for o in shown if "stack traceback" in o[1]], "the tutorial has no errors", shown)
    look_at(await run_notebook(page, "try.ipynb"))
    if len(sys.argv) > 2:
        picture = await page.call("Page.captureScreenshot", format="png")
        with open(sys.argv[2], "wb") as f:
            f.write(base64.b64decode(picture["data"]))


async def run_notebook(page, name):
    await page.call("Runtime.evaluate", expression=RUN.replace("NAME", name))
    await page.until("window.finished", 180)
    check(await page.evaluate("window.finished === true"), name + " runs", await page.evaluate("window.finished"))
    await asyncio.sleep(1.5)
    return await page.evaluate(OUTPUTS) or []


def look_at(outputs):
    check(len(outputs) == 6, "six cells", outputs)
    if len(outputs) != 6:
        return
    text = ["\n".join(o[1] for o in cell) for cell in outputs]
    check("int4" in text[0] and sum(o[3] for o in outputs[0]) == 1, "a tensor as a table", outputs[0])
    check("float32(2, 3)" in text[1] and "a line of stderr" in text[1], "streams", outputs[1])
    check(sum(o[2] for o in outputs[2]) >= 1, "a figure as a picture", outputs[2])
    check(sum(o[3] for o in outputs[3]) == 1 and "binary" in text[3], "a report as a table", outputs[3])
    check("no method 'nothing'" in text[4] and "stack traceback" in text[4], "an error with its stack", outputs[4])
    check("by this" in text[5] and "replaced" not in text[5], "an output that was replaced", outputs[5])


def main():
    subprocess.run([QUOLL, "kernel", "install"], check=True, stdout=subprocess.DEVNULL)
    write_notebooks()
    port = free_port()
    server, browser = start_server(port), None
    try:
        wait_for(f"http://127.0.0.1:{port}/api?token={TOKEN}")
        browser, address = start_browser()
        asyncio.run(drive(port, address))
    finally:
        for process in (browser, server):
            if process:
                process.terminate()
                process.wait(20)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main()
