"""Profiles for the property tests (`deep` is that of `make test-deep`), and the lines that sum up the long targets."""

import signal
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from broker.interruption import SIGNALS
from tests.measures import Take, summary, taker

settings.register_profile("default", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


def pytest_configure() -> None:
    """What runs the tests may ignore signals (`nohup`, `&`): the programs that tests start and stop must not."""
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _ignored)


def _ignored(_number: int, _frame: FrameType | None) -> None:
    """Another program does not inherit this, as it would SIG_IGN."""


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
