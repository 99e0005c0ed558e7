"""Tests of the judging: `python3 -m unittest discover tests/agents`."""

from __future__ import annotations

import socket
import tempfile
import unittest
from pathlib import Path

from agents import AGENTS
from run import Row, failures, tables
from scenarios import SCENARIOS, File
from trial import Passed, Proxy, TrialError, bounded, configuration, found, requests, said, written

LOG = """\
{"log":"access","route":"responses","model":"coder","target":"chat","status":200,"outcome":"completed"}
{"log":"access","route":"models","status":200,"outcome":"completed"}
a line of another kind
{"log":"access","route":"responses","model":"coder","target":"chat","status":200,"outcome":"completed"}
"""
CODEX, AIDER = AGENTS[0], AGENTS[-1]
CLAUDE = next(agent for agent in AGENTS if agent.name == "claude-code")
WRITE, EDIT, _, SWITCH, FAILOVER, OVERFLOW = SCENARIOS


class Judging(unittest.TestCase):
    def test_requests_are_counted_and_have_to_be_completed(self) -> None:
        self.assertEqual(requests(CODEX, WRITE, ("chat",), LOG), 2)
        cases = {
            "no request to chat": "",
            "1 requests": LOG[: LOG.index("\n")],
            "502 upstream_error by responses": LOG.replace(
                '200,"outcome":"completed"', '502,"outcome":"upstream_error"'
            ),
            "200 completed by messages": LOG.replace('"responses"', '"messages"'),
        }
        for failure, log in cases.items():
            with self.assertRaises(TrialError) as raised:
                requests(CODEX, WRITE, ("chat",), log)
            self.assertEqual(str(raised.exception), failure)

    def test_every_upstream_has_to_be_used(self) -> None:
        with self.assertRaisesRegex(TrialError, r"^no request to messages$"):
            requests(CODEX, FAILOVER, ("messages", "chat"), LOG)

    def test_only_a_history_that_becomes_too_long_is_refused(self) -> None:
        refused = LOG + LOG[: LOG.index("\n")].replace('200,"outcome":"completed"', '400,"outcome":"upstream_rejected"')
        self.assertEqual(requests(CODEX, OVERFLOW, ("chat",), refused), 3)
        self.assertRaisesRegex(TrialError, "^400 ", requests, CODEX, EDIT, ("chat",), refused)
        self.assertRaisesRegex(TrialError, "^no request was too long$", requests, CODEX, OVERFLOW, ("chat",), LOG)

    def test_agents_with_tools_have_to_print_the_last_text(self) -> None:
        self.assertIsNone(said(CODEX, WRITE, "a\nThe tool said: Wrote it.; Wrote it."))
        self.assertIsNone(said(AIDER, WRITE, ""))
        self.assertEqual(said(CODEX, EDIT, "The tool said: Wrote it.\nThoughts that came back: 3.\n"), 3)
        for scenario, output in [
            (WRITE, "The tool said: Wrote it."),
            (WRITE, "Wrote it; and again."),
            (EDIT, "The tool said: Wrote it.; Wrote it."),
        ]:
            self.assertRaises(TrialError, said, CODEX, scenario, output)

    def test_files_have_to_exist_with_their_lines(self) -> None:
        files = [File("hello.txt", ("The gateway was here.",)), File("again.txt", ("One.", "Two."), ("one", "two"))]
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            (work / "hello.txt").write_text("The gateway was here.\n")
            with self.assertRaisesRegex(TrialError, r"^again.txt: "):
                written(files, work)
            (work / "again.txt").write_text("One.\ntwo\n")
            with self.assertRaisesRegex(TrialError, r"^again.txt contains 'One.\\ntwo\\n'$"):
                written(files, work)
            (work / "again.txt").write_text("One.\nTwo.\n")
            written(files, work)

    def test_models_have_to_be_found_in_the_list(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            found(CODEX, WRITE, home)
            with self.assertRaisesRegex(TrialError, r"^.claude/cache/gateway-models.json: No such file"):
                found(CLAUDE, WRITE, home)
            file = home / ".claude/cache/gateway-models.json"
            file.parent.mkdir(parents=True)
            file.write_text('{"models":[{"id":"claude-coder","display_name":"claude-coder"}]}')
            found(CLAUDE, WRITE, home)
            with self.assertRaisesRegex(TrialError, r"^the agent found the models \['claude-coder'\]$"):
                found(CLAUDE, SWITCH, home)

    def test_results_are_tables_and_failures_are_listed(self) -> None:
        codex = {"write": [Passed(2, None), "exit status: 1", *[Passed(1, None)] * 4], "edit": [Passed(4, 3)] * 3}
        rows = [
            Row(CODEX, "1.2", codex, ["a.example", "registry.example"]),
            Row(AIDER, "3.4", codex | {"edit": "no tools"}, []),
        ]
        lines = tables(rows, [WRITE, EDIT]).splitlines()
        self.assertIn("| Codex, other models | 1.2 | Responses | a.example, a registry of packages |", lines)
        start = "| Codex, other models | Responses | passed, 2 requests | FAILED: exit status: 1 | passed, 1 request | "
        self.assertTrue(any(line.startswith(start) for line in lines), lines)
        passed = "passed, 4 requests, 3 thoughts"
        self.assertIn(f"| Codex, other models | Responses | {passed} | {passed} | {passed} |", lines)
        self.assertEqual(lines[-1], "Not run: aider: no tools.")
        failed = [f"{name} write over messages: exit status: 1" for name in ["codex", "aider"]]
        self.assertEqual(failures(rows, [WRITE, EDIT]), failed)


class Running(unittest.TestCase):
    def test_upstreams_are_targets_of_one_model_or_models_of_their_own(self) -> None:
        targets = [
            (
                FAILOVER,
                [
                    'targets = [{ upstream = "chat", model = "coding-agent-failing-1" }, '
                    '{ upstream = "messages", model = "coding-agent-thinking" }]'
                ],
            ),
            (
                SWITCH,
                [
                    'targets = [{ upstream = "chat", model = "coding-agent-thinking" }]',
                    'targets = [{ upstream = "messages", model = "coding-agent-thinking" }]',
                ],
            ),
        ]
        for scenario, expected in targets:
            lines = configuration("http://127.0.0.1:1/v1", CODEX, scenario, ("chat", "messages")).splitlines()
            self.assertEqual([line for line in lines if line.startswith("targets")], expected)

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
