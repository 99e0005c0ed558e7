"""The checks of llm-comply against the gateway in front of the scripted model."""

from __future__ import annotations

import pytest
from llm_comply.config import ComplianceConfig
from llm_comply.runner import TestRunner
from llm_comply.test_case import TestCase
from llm_comply.tests import get_tests

from conftest import UPSTREAMS
from gateway import MESSAGES_KEY, TEXT_KEY, Gateway
from published import SPECS

# The key and the model that each format is asked with.
FORMATS = {
    "openai-chat": (TEXT_KEY, "gpt-5"),
    "open-responses": (TEXT_KEY, "gpt-5"),
    "anthropic": (MESSAGES_KEY, "claude-4"),
}
CHECKS = [pytest.param(name, case, id=f"{name}-{case.id}") for name in FORMATS for case in get_tests(name)]
TestCase.__test__ = TestRunner.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize(("name", "case"), CHECKS)
def test_check(gateway: Gateway, name: str, case: TestCase, upstream: str) -> None:
    key, model = FORMATS[name]
    config = ComplianceConfig(f"{gateway.url}/v1", key, f"{model}-over-{upstream}")
    result = TestRunner(config, [case], SPECS[name]).run_one(case)
    # A warning of llm-comply is no failure.
    assert (result.status.value, result.errors) == ("passed", [])
