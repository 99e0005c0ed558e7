"""Tests of the judging: `python3 -m unittest discover tests/agents`."""

from __future__ import annotations

import socket
import tempfile
import unittest
from pathlib import Path

from agents import AGENTS
from run import Row, failures, table
from trial import Proxy, TrialError, bounded, quoted, requests, written

LOG = """\
{"log":"access","route":"responses","model":"a","status":200,"outcome":"completed"}
{"log":"access","route":"responses","model":"b","status":502,"outcome":"upstream_error"}
{"log":"access","route":"responses","model":"a","status":200,"outcome":"completed"}
a line of another kind
{"log":"access","route":"messages","model":"c","status":200,"outcome":"completed"}
"""
CODEX, AIDER = AGENTS[0], AGENTS[-1]


class Judging(unittest.TestCase):
    def test_requests_are_counted_by_model_and_have_to_be_completed(self) -> None:
        self.assertEqual(requests(CODEX, LOG, "a"), 2)
        cases = {"none": "0 requests", "b": "502 upstream_error by responses", "c": "200 completed by messages"}
        for model, failure in cases.items():
            with self.assertRaises(TrialError) as raised:
                requests(CODEX, LOG, model)
            self.assertEqual(str(raised.exception), failure)

    def test_agents_with_tools_have_to_print_the_results_of_both_calls(self) -> None:
        quoted(CODEX, "a\nThe tool said: Wrote it.; Wrote it.")
        quoted(AIDER, "")
        for output in ["The tool said: Wrote it.", "Wrote it; and again."]:
            self.assertRaises(TrialError, quoted, CODEX, output)

    def test_files_have_to_exist_with_their_lines(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            (work / "hello.txt").write_text("The gateway was here.\n")
            with self.assertRaisesRegex(TrialError, r"^again.txt: "):
                written(work)
            (work / "again.txt").write_text("And it is here.\n")
            with self.assertRaisesRegex(TrialError, r"^again.txt contains 'And it is here.\\n'$"):
                written(work)
            (work / "again.txt").write_text("And it's still here.\n")
            written(work)

    def test_results_are_a_table_and_failures_are_listed(self) -> None:
        rows = [Row(CODEX, "1.2", [2, "exit status: 1", 1, 2, 2, 2], ["a.example", "registry.example"])]
        line = table(rows).splitlines()[2]
        start = "| Codex | 1.2 | Responses | passed, 2 requests | FAILED: exit status: 1 | passed, 1 request | "
        self.assertTrue(line.startswith(start), line)
        self.assertTrue(line.endswith(" | a.example, a registry of packages |"), line)
        self.assertEqual(failures(rows), ["codex over messages: exit status: 1"])


class Running(unittest.TestCase):
    def test_requests_to_the_proxy_are_refused_and_their_hosts_are_recorded(self) -> None:
        proxy = Proxy()
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        for first in [b"CONNECT b.example:443 HTTP/1.1", b"GET http://a.example/x?y=://c HTTP/1.1"]:
            with socket.create_connection(proxy.server_address) as client:
                client.sendall(first + b"\r\nhost: x\r\n\r\n")
                self.assertTrue(client.recv(1000).startswith(b"HTTP/1.1 403 "))
        with socket.create_connection(proxy.server_address) as client:
            client.sendall(b"GET http://d.exa")
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(client.recv(1000), b"")
        self.assertEqual(proxy.hosts, {"a.example", "b.example"})

    def test_a_program_that_takes_too_long_is_killed_with_its_children(self) -> None:
        self.assertEqual(bounded(["sh", "-c", "exit 3"], 60), 3)
        self.assertIsNone(bounded(["sh", "-c", "sleep 60 & wait"], 0.02))
