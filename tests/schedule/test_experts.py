"""An expert from outside is told each hour what owed starts wanted, and takes part in what is held back."""

from broker.model.policy import Policy
from broker.schedule.foretold import Experts, HourOver
from broker.schedule.memory import Memory
from broker.schedule.step import begin, look
from tests.schedule.cluster import SETTINGS, START, job, policy, running, seen, tenant

TWO = policy(tenant("vision", 8), tenant("nlp", 8))
HOUR = 3600.0


class Told:
    """Keeps what it was told, and always says the same."""

    def __init__(self, says: float | None) -> None:
        self.says = says
        self.hours: list[HourOver] = []

    def __call__(self, over: HourOver) -> float | None:
        self.hours.append(over)
        return self.says


def hour_by_hour(expert: Told, hours: int, rules: Policy = TWO) -> Memory:
    """nlp starts one job of 4 GPUs an hour, and looks come every half hour."""
    memory = begin(START)
    for half in range(2 * hours + 1):
        now = half * HOUR / 2
        queue = [job(f"j{half}", "nlp", 4, now)] if half % 2 else []
        if half and half % 2 == 0:
            queue = [running(f"j{half - 1}", "nlp", 4, now - HOUR / 2, now - HOUR / 2 + 1)]
        look(memory, seen(now, *queue), rules, SETTINGS, experts=Experts(starts=expert))
    return memory


def test_is_asked_once_an_hour_and_told_what_the_hour_wanted() -> None:
    expert = Told(None)
    hour_by_hour(expert, 5)
    first = int(START.timestamp() // HOUR)
    assert [over.hour for over in expert.hours] == [first + n for n in range(1, 6)]
    assert [over.wanted for over in expert.hours] == [0.0, 4.0, 4.0, 4.0, 4.0], "a start is counted when the next comes"
    assert {(over.pool, over.windows, len(over.known)) for over in expert.hours} == {("h100", 30, 4)}


def test_takes_part_and_does_not_rule() -> None:
    """It is followed while no other was better; one that says nonsense is heard like one that is silent."""
    held = {}
    for says in (None, 0.0, 6.0, float("nan"), float("inf"), -1.0):
        memory = hour_by_hour(Told(says), 2)
        held[str(says)] = memory.pools["h100"].machine.state.pool[0].hold
    assert held["6.0"] == 6
    assert held["None"] == held["nan"] == held["inf"] == held["-1.0"] != 6
    memory = hour_by_hour(Told(0.0), 5)
    assert memory.pools["h100"].machine.state.pool[0].hold >= 4, "it said nothing would be wanted, and was wrong"
