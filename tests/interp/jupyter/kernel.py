#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The kernel as Jupyter runs it: jupyter_kernel_test, and what that suite does not look at, through jupyter_client.

usage: kernel.py QUOLL [unittest arguments]; run by kernel.sh, which provides the packages.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import jupyter_kernel_test
import nbformat
import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session
from notebooks import from_percent

QUOLL = os.path.abspath(sys.argv[1])
FOLDER = tempfile.mkdtemp(prefix="quoll-jupyter-")
os.environ.update(JUPYTER_DATA_DIR=FOLDER + "/data", JUPYTER_RUNTIME_DIR=FOLDER + "/run", JUPYTER_PLATFORM_DIRS="0")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
TUTORIAL = ROOT + "/tutorials/01_first_steps.lua"


class Suite(jupyter_kernel_test.KernelTests):
    kernel_name = "quoll"
    language_name = "lua"
    file_extension = ".lua"
    code_hello_world = "print 'hello, world'"
    code_stderr = "io.stderr:write 'wrong\\n'"
    completion_samples = [
        {"text": "prin", "matches": {"print"}},
        {"text": "tensor.zero", "matches": {"zeros"}},
        {"text": "local x = string.gsu", "matches": {"gsub"}},
    ]
    complete_code_samples = ["1", "x = 5", "print('a')", "for i = 1, 2 do\n  print(i)\nend", "-- note", "?print"]
    incomplete_code_samples = ["for i = 1, 2 do", "function f(x)", "x = {", "print(", "s = [[a", "--[[ a"]
    invalid_code_samples = ["x = = 1", "end", "1 +* 2", "x y"]
    code_page_something = "?print"
    code_generate_error = "error 'no'"
    code_execute_result = [
        {"code": "6 * 7", "result": "42"},
        {"code": "'a' .. 'b'", "result": '"ab"'},
        {"code": "tensor{1, 2}", "mime": "text/html"},
        {"code": "plot.line{{1, 2}}", "mime": "image/png"},
    ]
    code_display_data = [
        {"code": "plot.line{{1, 2}}:show()", "mime": "image/png"},
        {"code": "jupyter.display(tensor{{1, 2}})", "mime": "text/html"},
        {"code": "plot.line{{1, 2}}:show()", "mime": "text/plain"},
    ]
    code_history_pattern = "6 ?*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "tensor.zeros"
    code_clear_output = "jupyter.clear()"


class Welcome(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "quoll"
    support_iopub_welcome = True


class Kernel:
    """A kernel with one client."""

    def __init__(self):
        self.manager = KernelManager(kernel_name="quoll")
        self.manager.start_kernel()
        self.client = self.open_client()
        self.pid = self.manager.provisioner.process.pid

    def open_client(self):
        """A client with a session, and so an identity, of its own."""
        client = BlockingKernelClient()
        client.load_connection_file(self.manager.connection_file)
        client.start_channels()
        client.wait_for_ready(timeout=20)
        return client

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def outputs(self, message, timeout=30):
        """The messages of iopub that belong to a request, up to idle."""
        found = []
        while True:
            m = self.client.get_iopub_msg(timeout=timeout)
            if m["parent_header"].get("msg_id") != message:
                continue
            if m["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
                return found
            found.append(m)

    def run(self, code, timeout=30, **options):
        message = self.client.execute(code, **options)
        reply = self.reply(message, timeout)
        return reply["content"], self.outputs(message, timeout)

    def reply(self, message, timeout=30):
        while True:
            m = self.client.get_shell_msg(timeout=timeout)
            if m["parent_header"].get("msg_id") == message:
                return m

    def wait_busy(self, message):
        while True:
            m = self.client.get_iopub_msg(timeout=20)
            if m["msg_type"] == "execute_input" and m["parent_header"].get("msg_id") == message:
                return


def text_of(outputs, name="stdout"):
    return "".join(m["content"]["text"] for m in outputs if m["msg_type"] == "stream" and m["content"]["name"] == name)


def plain(outputs):
    return [m["content"]["data"]["text/plain"] for m in outputs if m["msg_type"] == "execute_result"]


def children(pid):
    listing = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [line.split() for line in listing.splitlines()]


class Own(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel()

    @classmethod
    def tearDownClass(cls):
        cls.kernel.close()

    def run_cell(self, code, **options):
        return self.kernel.run(code, **options)

    def interrupt(self, code, send, most=1.0):
        """Interrupts a cell that would run for minutes; the reply must come within a second."""
        message = self.kernel.client.execute(code)
        self.kernel.wait_busy(message)
        time.sleep(0.7)
        begin = time.monotonic()
        send()
        reply = self.kernel.reply(message)
        took = time.monotonic() - begin
        self.assertEqual(reply["content"]["status"], "error", reply["content"])
        self.assertEqual(reply["content"]["ename"], "Interrupted")
        self.assertLess(took, most)
        self.kernel.outputs(message)
        self.assertEqual(plain(self.run_cell("1 + 1")[1]), ["2"])
        return took

    LOOPS = {
        "lua": "while true do end",
        "pcall": "while true do pcall(function() while true do end end) end",
        "matmul": "local a = tensor.randn(6000, 6000) while true do a:matmul(a) end",
        "conv": "local x, w = tensor.randn(16, 64, 96, 96), tensor.randn(64, 64, 5, 5) while true do x:conv2d(w) end",
        "child": "os.execute 'sleep 100'",
        "popen": "io.popen('sleep 100'):read 'a'",
        "shell": "!sleep 100",
        "input": "io.read()",
    }

    def test_interrupt_by_signal(self):
        for name, code in self.LOOPS.items():
            with self.subTest(name=name):
                self.interrupt(code, self.kernel.manager.interrupt_kernel)

    def test_interrupt_by_message(self):
        def send():
            session = self.kernel.client.session
            self.kernel.client.control_channel.send(session.msg("interrupt_request", {}))
            reply = self.kernel.client.get_control_msg(timeout=10)
            self.assertEqual(reply["msg_type"], "interrupt_reply")

        for name, code in self.LOOPS.items():
            with self.subTest(name=name):
                self.interrupt(code, send)

    def test_interrupts_end_nothing(self):
        for _ in range(4):  # while idle
            self.kernel.manager.interrupt_kernel()
            time.sleep(0.4)
        self.assertEqual(plain(self.run_cell("3")[1]), ["3"])
        message = self.kernel.client.execute("while true do end")
        self.kernel.wait_busy(message)
        for _ in range(6):
            self.kernel.manager.interrupt_kernel()
            time.sleep(0.25)
        self.assertEqual(self.kernel.reply(message)["content"]["ename"], "Interrupted")
        self.assertTrue(self.kernel.manager.is_alive())

    def test_children(self):
        _, outputs = self.run_cell(
            "io.write 'a' os.execute 'echo b; echo wrong >&2' print 'c' "
            "local p = io.popen('cat', 'w') p:write 'd\\n' p:close() io.write 'e'")
        self.assertEqual(text_of(outputs), "ab\nc\nd\ne")
        self.assertEqual(text_of(outputs, "stderr"), "wrong\n")
        _, outputs = self.run_cell("!echo shell")
        self.assertEqual(text_of(outputs), "shell\n")
        _, outputs = self.run_cell("os.execute 'cat; echo end'")  # stdin of children is empty
        self.assertEqual(text_of(outputs), "end\n")

    def test_output_while_it_runs(self):
        message = self.kernel.client.execute("print 'early' os.execute 'echo child; sleep 2' print 'late'")
        begin, seen = time.monotonic(), ""
        while "child" not in seen:
            m = self.kernel.client.get_iopub_msg(timeout=5)
            if m["msg_type"] == "stream":
                seen += m["content"]["text"]
        self.assertLess(time.monotonic() - begin, 1.5)
        self.assertEqual(seen, "early\nchild\n")
        self.kernel.reply(message)

    def test_much_output(self):
        for code in ("local line = ('x'):rep(99) for i = 1, 100000 do print(line) end",
                     "os.execute \"yes xxxxxxxxx | head -n 1000000\"", "io.write(('x'):rep(10000000))"):
            begin = time.monotonic()
            _, outputs = self.run_cell(code, timeout=60)
            self.assertEqual(len(text_of(outputs)), 10000000)
            self.assertLess(len(outputs), 1000, "output is gathered")
            self.assertLess(time.monotonic() - begin, 20)

    def test_many_small_outputs_are_gathered(self):
        _, outputs = self.run_cell("for i = 1, 2000 do io.write(i, ' ') io.flush() end")
        self.assertEqual(text_of(outputs).split(), [str(i) for i in range(1, 2001)])
        self.assertLess(len(outputs), 30)

    def test_any_bytes(self):
        _, outputs = self.run_cell("io.write '\\0\\255\\u{20AC}' os.execute [[printf 'x\\377y']]")
        self.assertEqual(text_of(outputs), "\0\ufffd\u20acx\ufffdy")

    def test_figures(self):
        _, outputs = self.run_cell("plot.line{{1, 4, 9}}:show() plot.bar{{3, 1}}")
        kinds = [m["msg_type"] for m in outputs if m["msg_type"] in ("display_data", "execute_result")]
        self.assertEqual(kinds, ["display_data", "execute_result"])
        for m in outputs:
            if "data" in m["content"]:
                data = m["content"]["data"]
                self.assertTrue(data["image/png"].startswith("iVBORw0KGgo"))
                self.assertNotIn("image/svg+xml", data)  # each figure once in what front ends save
                self.assertIn("figure", data["text/plain"])

    def test_progress(self):
        _, outputs = self.run_cell(
            "local progress = debug.getregistry()['quoll.internal'].import 'interp/prelude/progress' "
            "local p = progress.start('work', 30) "
            "for i = 1, 30 do os.execute 'sleep 0.1' p:update(i, function() return 'x' end) end p:done 'finished'")
        text = text_of(outputs, "stderr")
        self.assertTrue(text.endswith("\rfinished\n") and 3 <= text.count("work") <= 7, repr(text))
        self.assertNotIn("\33", text)

    def test_input(self):
        message = self.kernel.client.execute("io.write 'name? ' local n = io.read() print('hello ' .. n)")
        request = self.kernel.client.get_stdin_msg(timeout=10)
        self.assertEqual(request["msg_type"], "input_request")
        self.kernel.client.input("Ada")
        self.assertEqual(self.kernel.reply(message)["content"]["status"], "ok")
        self.assertEqual(text_of(self.kernel.outputs(message)), "name? hello Ada\n")

    def test_queue_is_aborted(self):
        ids = [self.kernel.client.execute(code) for code in ("os.execute 'sleep 0.3' error 'x'", "ran = 1", "ran = 2")]
        self.assertEqual([self.kernel.reply(i)["content"]["status"] for i in ids], ["error", "aborted", "aborted"])
        self.assertEqual(plain(self.run_cell("ran")[1]), ["nil"])

    def test_heartbeat_while_busy(self):
        message = self.kernel.client.execute("while true do end")
        self.kernel.wait_busy(message)
        self.kernel.client.hb_channel.unpause()
        time.sleep(3)
        self.assertTrue(self.kernel.client.hb_channel.is_beating())
        self.kernel.manager.interrupt_kernel()
        self.kernel.reply(message)

    def test_two_clients(self):
        other = self.kernel.open_client()
        first = self.kernel.client.execute("os.execute 'sleep 0.2' print 'first'")
        second = other.execute("print 'second'")
        self.kernel.reply(first)
        while other.get_shell_msg(timeout=10)["parent_header"].get("msg_id") != second:
            pass
        self.assertEqual(text_of(self.kernel.outputs(first)), "first\n")
        seen = {}
        while len(seen) < 2:  # both hear both
            m = other.get_iopub_msg(timeout=10)
            if m["msg_type"] == "stream":
                seen[m["parent_header"]["msg_id"]] = m["content"]["text"]
        self.assertEqual(seen, {first: "first\n", second: "second\n"})
        other.stop_channels()

    def raw(self, port):
        info = self.kernel.manager.get_connection_info()
        socket_ = zmq.Context.instance().socket(zmq.DEALER)
        socket_.linger = 0
        socket_.connect(f"tcp://{info['ip']}:{info[port]}")
        return socket_, Session(key=info["key"], signature_scheme="hmac-sha256")

    def test_signatures_and_replays(self):
        for port in ("shell_port", "control_port"):
            with self.subTest(port=port):
                socket_, session = self.raw(port)
                bad = Session(key=b"not the key")
                bad.send(socket_, "kernel_info_request", {})
                self.assertEqual(socket_.poll(500), 0, "a wrong signature was answered")
                frames = session.serialize(session.msg("kernel_info_request", {}))
                socket_.send_multipart(frames)
                self.assertTrue(socket_.poll(10000))
                socket_.recv_multipart()
                socket_.send_multipart(frames)
                self.assertEqual(socket_.poll(500), 0, "a replay was answered")
                unsigned = session.serialize(session.msg("kernel_info_request", {}))
                unsigned[1] = b""
                socket_.send_multipart(unsigned)
                self.assertEqual(socket_.poll(500), 0, "an unsigned message was answered")
                socket_.close()

    def test_garbage(self):
        info = self.kernel.manager.get_connection_info()
        noise = os.urandom(100000)
        for port in ("shell_port", "control_port", "stdin_port", "iopub_port", "hb_port"):
            for piece in (noise, b"GET / HTTP/1.1\r\n\r\n", b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL" + bytes(48) + noise):
                with socket.create_connection((info["ip"], info[port])) as s:
                    try:
                        s.sendall(piece)
                    except OSError:
                        pass  # it was closed: as well
        for port in ("shell_port", "control_port", "stdin_port"):
            socket_, _ = self.raw(port)
            wrong = [b"<IDS|MSG>", b"0" * 64, noise, b"{}", b"{}", b"{}"]
            for frames in ([b""], [b"<IDS|MSG>"], [noise] * 40, [b"x"] * 33, wrong):
                socket_.send_multipart(frames)
            self.assertEqual(socket_.poll(300), 0)
            socket_.close()
        self.assertEqual(plain(self.run_cell("6 * 7")[1]), ["42"])

    def test_completion_counts_characters(self):
        code = "\u00e9\u20ac = tensor.zero"
        content = self.kernel.reply(self.kernel.client.complete(code + " + 1", len(code)))["content"]
        self.assertEqual((content["matches"], content["cursor_start"], content["cursor_end"]), (["zeros"], 12, 16))

    def test_bad_requests_are_answered(self):
        session = self.kernel.client.session
        for kind in ("execute", "complete", "inspect", "is_complete"):
            message = session.msg(kind + "_request", {"code": 7, "cursor_pos": "x"})
            self.kernel.client.shell_channel.send(message)
            reply = self.kernel.reply(message["header"]["msg_id"])
            self.assertEqual((reply["msg_type"], reply["content"]["status"]), (kind + "_reply", "error"))

    def test_no_zombies(self):
        self.run_cell("for i = 1, 20 do os.execute 'true' io.popen('true'):close() end")
        self.assertEqual([c for c in children(self.kernel.pid) if c[1].startswith("Z")], [])


class Ending(unittest.TestCase):
    def setUp(self):
        self.kernel = Kernel()

    def tearDown(self):
        self.kernel.close()

    def ended(self, most):
        begin = time.monotonic()
        while self.kernel.manager.is_alive() and time.monotonic() - begin < most + 5:
            time.sleep(0.02)
        self.assertFalse(self.kernel.manager.is_alive())
        self.assertLess(time.monotonic() - begin, most)
        return self.kernel.manager.provisioner.process.returncode

    def test_restart(self):
        self.kernel.run("kept = 1")
        self.kernel.manager.restart_kernel()
        self.kernel.client.wait_for_ready(timeout=20)
        _, outputs = self.kernel.run("kept")
        self.assertEqual(plain(outputs), ["nil"])
        self.assertEqual(outputs[-1]["content"]["execution_count"], 1)

    def test_shutdown(self):
        for code in (None, "while true do end", "os.execute 'sleep 100'", "io.read()"):
            with self.subTest(code=code):
                self.kernel.close()
                self.kernel = Kernel()
                if code:
                    self.kernel.wait_busy(self.kernel.client.execute(code))
                self.kernel.client.shutdown()
                self.assertEqual(self.kernel.client.get_control_msg(timeout=5)["msg_type"], "shutdown_reply")
                self.assertEqual(self.ended(3), 0)

    def test_terminated(self):
        for code in (None, "while true do end"):
            if code:
                self.kernel.wait_busy(self.kernel.client.execute(code))
            os.kill(self.kernel.pid, signal.SIGTERM)
            self.assertEqual(self.ended(3), 0)
            self.kernel.close()
            self.kernel = Kernel()

    def test_children_end_with_it(self):
        self.kernel.run("p = io.popen 'sleep 345'")
        child = children(self.kernel.pid)
        self.assertEqual(len(child), 1)
        self.kernel.client.shutdown()
        self.ended(3)
        time.sleep(0.2)
        self.assertFalse(os.path.exists("/proc/" + child[0][0]))

    def test_os_exit(self):
        message = self.kernel.client.execute("print 'bye' os.exit(5)")
        self.assertEqual(self.kernel.reply(message)["content"]["status"], "ok")
        self.assertEqual(text_of(self.kernel.outputs(message)), "bye\n")
        self.assertEqual(self.ended(3), 5)

    def test_parent_dies(self):
        info = self.kernel.manager.get_connection_info()
        info = {k: v.decode() if isinstance(v, bytes) else v for k, v in info.items()}
        ports = [socket.socket() for _ in range(5)]
        for s in ports:
            s.bind(("127.0.0.1", 0))
        for name, s in zip(("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port"), ports):
            info[name] = s.getsockname()[1]
            s.close()
        file = FOLDER + "/connection.json"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            json.dump(info, f)
        script = "JPY_PARENT_PID=$$ %s kernel %s & echo $!; sleep 1; kill -9 $$" % (QUOLL, file)
        shell = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        pid = int(shell.stdout.split()[0])
        begin = time.monotonic()
        while os.path.exists(f"/proc/{pid}/exe") and time.monotonic() - begin < 5:
            time.sleep(0.05)
        self.assertFalse(os.path.exists(f"/proc/{pid}/exe"))


class Notebooks(unittest.TestCase):
    def test_nbconvert(self):
        notebook = from_percent(TUTORIAL)
        self.assertGreater(len(notebook.cells), 3)
        file = FOLDER + "/tutorial.ipynb"
        nbformat.write(notebook, file)
        convert = [sys.executable, "-m", "nbconvert", "--to"]
        subprocess.run(convert + ["notebook", "--execute", "--inplace", file], check=True, capture_output=True)
        done = nbformat.read(file, 4)
        nbformat.validate(done)
        outputs = [o for c in done.cells if c.cell_type == "code" for o in c.outputs]
        self.assertGreater(len(outputs), 5)
        self.assertEqual([o for o in outputs if o.output_type == "error"], [])
        subprocess.run(convert + ["html", file], check=True, capture_output=True)

    def execute(self, name, text):
        """A percent file through quoll convert and nbconvert --execute; the notebook that comes out, or None."""
        file = f"{FOLDER}/{name}.ipynb"
        with open(f"{FOLDER}/{name}.lua", "w", encoding="utf-8") as f:
            f.write(text)
        subprocess.run([QUOLL, "convert", f"{FOLDER}/{name}.lua", file], check=True)
        command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", file]
        if subprocess.run(command, capture_output=True).returncode:
            return None
        done = nbformat.read(file, 4)
        nbformat.validate(done)
        return done

    def test_raises(self):
        done = self.execute("raises", '-- %% tags=["raises"]\nerror "wanted"\n\n-- %%\n6 * 7\n')
        self.assertEqual(done.cells[0].outputs[0].output_type, "error")
        self.assertEqual(done.cells[1].outputs[0].data["text/plain"], "42")
        self.assertIsNone(self.execute("fails", '-- %%\nerror "wanted"\n\n-- %%\n6 * 7\n'))

    def test_demo(self):
        """The notebook that tutorials/README.md says how to make."""
        with open(TUTORIAL, encoding="utf-8") as f:
            done = self.execute("quantization_demo", f.read())
        outputs = [o for c in done.cells if c.cell_type == "code" for o in c.outputs]
        self.assertEqual([o for o in outputs if o.output_type == "error"], [])
        self.assertGreater(len([o for o in outputs if "image/png" in o.get("data", {})]), 0)


if __name__ == "__main__":
    subprocess.run([QUOLL, "kernel", "install"], check=True, stdout=subprocess.DEVNULL)
    result = unittest.main(argv=sys.argv[:1] + sys.argv[2:], exit=False, verbosity=1).result
    failed = len(result.failures) + len(result.errors)
    for test, why in result.skipped:
        print(f"skipped: {test.id()}: {why}")
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed, {len(result.skipped)} skipped")
    sys.exit(failed > 0)
