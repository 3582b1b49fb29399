"""Profiles for the property tests (`deep` is that of `make test-deep`), and the lines that sum up the long targets."""

import pytest
from hypothesis import HealthCheck, settings

from tests.measures import Take, summary, taker

settings.register_profile("default", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture
def take(request: pytest.FixtureRequest) -> Take:
    """`take(what, value, bar, unit, least=False)`: a measure of `make bench` or `make bench-sia`."""
    return taker(request.config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if line := summary(config):
        terminalreporter.write_line(line)
    if config.option.markexpr == "deep":
        held, failed = (len(terminalreporter.getreports(how)) for how in ("passed", "failed"))
        most = f"up to {settings().max_examples:,} examples each"
        terminalreporter.write_line(f"deep: {held} properties and long tests hold, {failed} fail; {most}")
