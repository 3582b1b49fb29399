"""A seeded history: steps drawn by weight, each with a seed of its own, so that some can be left out on replay."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from broker.apply.boundary import Boundary
from providers.sandbox.local import Sandbox
from tests.sim.promises import Before, Broken, check_bill, check_command, check_ledger, check_nothing_held
from tests.sim.site import MAX_RELEASED, Ran, Site
from tests.sim.world import World

LINEAGE = "0123456789ab"
SHORTEST, LONGEST = 30, 80
WEIGHTS = {
    "run": 14,
    "run_killed": 7,
    "plan_saved": 4,
    "plan_applied": 5,
    "plan_applied_killed": 1,
    "release_one": 1,
    "release_all": 0.5,
    "state_copied": 1,
    "state_put_back": 0.7,
    "state_lost": 0.5,
    "jobs_arrive": 6,
    "job_starts": 8,
    "job_ends": 5,
    "job_is_cancelled": 4,
    "all_jobs_end": 2,
    "queue_breaks": 1.5,
    "queue_mends": 3,
    "time_passes": 14,
    "clock_goes_wrong": 0.5,
    "clock_is_set": 1.5,
    "price_changes": 1,
    "price_file_breaks": 0.5,
    "price_file_mends": 1.5,
    "freeze": 1,
    "unfreeze": 1.5,
    "stock_changes": 2.5,
    "quota_changes": 0.7,
    "reply_is_lost": 2.5,
    "change_shows_later": 2.5,
    "cloud_errs": 1.5,
    "change_is_denied": 0.7,
    "change_fails_later": 0.7,
    "comes_in_part": 1.5,
    "cloud_throttles": 0.5,
    "listing_fails": 0.8,
    "clouds_get_well": 4,
    "person_deletes": 0.8,
    "person_resizes": 1,
    "others_buy": 0.5,
}
_DEATHS = tuple(Boundary)
QUIET = timedelta(minutes=7)


class Step(NamedTuple):
    """What happens, and the seed of what it draws."""

    what: str
    seed: int

    def __str__(self) -> str:
        return f"{self.what}:{self.seed}"


def drawn(seed: int) -> tuple[Step, ...]:
    draw = Random(seed)
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    wanted = draw.choices(names, weights, k=draw.randint(SHORTEST, LONGEST))
    return tuple(Step(what, draw.randrange(10**6)) for what in wanted)


class Failed(AssertionError):
    """A history in which a promise did not hold: what, and all steps with what they did."""


class History:
    """`told` is what happened, one line a step."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.site = Site(sandbox, folder, LINEAGE)
        self.world = World(self.site)
        self.told: list[str] = []
        self.commands = 0
        self.restored = False
        self.off = timedelta(0)

    def play(self, steps: Sequence[Step]) -> None:
        """Raises Failed."""
        try:
            for step in steps:
                self._play(step)
            self._come_to_rest()
        except Exception as error:
            told = "\n  ".join(self.told)
            again = " ".join(str(step) for step in steps)
            raise Failed(f"{type(error).__name__}: {error}\nto replay: {again}\n  {told}") from error

    def _play(self, step: Step) -> None:
        draw = Random(step.seed)
        self.told.append(f"{step}")
        act: Callable[[Random], str] = getattr(self, f"_{step.what}", None) or getattr(self.world, step.what)
        said = act(draw)
        self.off = max(self.off, abs(self.site.clock.off))
        self.told[-1] = f"{self.site.now:%d %H:%M} {step}  {said}"

    # -- commands

    def _checked(self, command: Callable[[], Ran]) -> str:
        before = Before(self.world)
        ran = command()
        self.commands += 1
        effects = self.site.sandbox.record.effects[before.effects :]
        did = [f"{e.provider} {e.kind} {e.id} {e.before}->{e.after}" for e in effects]
        said = f"{ran} {did}"
        self.told[-1] += f"  {said}"
        check_command(self.world, ran, before)
        return said

    def _death(self, draw: Random) -> tuple[Boundary, int]:
        return draw.choice(_DEATHS), draw.choice((1, 1, 2))

    def _run(self, draw: Random) -> str:
        return self._checked(self.site.run)

    def _run_killed(self, draw: Random) -> str:
        return self._checked(lambda: self.site.run(self._death(draw)))

    def _plan_saved(self, draw: Random) -> str:
        return self._checked(self.site.save_plan)

    def _plan_applied(self, draw: Random) -> str:
        return self._checked(self.site.apply_plan) if self.site.plan.exists() else ""

    def _plan_applied_killed(self, draw: Random) -> str:
        return self._checked(lambda: self.site.apply_plan(self._death(draw))) if self.site.plan.exists() else ""

    def _release_one(self, draw: Random) -> str:
        with self.site.store() as store:
            known = [r for r in store.reservations() if r.owner and r.owner.lineage == store.lineage]
        ids = [r.id for r in known if not r.state.gone]
        return self._checked(lambda: self.site.release((draw.choice(ids),))) if ids else ""

    def _release_all(self, draw: Random) -> str:
        return self._checked(self.site.release)

    def _state_copied(self, draw: Random) -> str:
        self.site.back_up()
        return ""

    def _state_put_back(self, draw: Random) -> str:
        if not (self.site.folder / "copy.db").exists():
            return ""
        self.site.put_back()
        self.restored = True
        return "done"

    def _state_lost(self, draw: Random) -> str:
        """Where the broker refuses to adopt by a wrong clock, a person sets it and adopts again."""
        self.site.lose()
        self.restored = True
        said = self._checked(self.site.adopt)
        if self.site.state.exists():
            return said
        self.world.clock_is_set(draw)
        return self._checked(self.site.adopt)

    # -- the end

    def _come_to_rest(self) -> None:
        """Events stop and runs go on: first the ledger is the truth; then, without jobs, nothing is held any more."""
        calm = Random(0)
        self.told.append("at rest")
        for mended in ("clouds_get_well", "clock_is_set", "queue_mends", "price_file_mends", "unfreeze"):
            getattr(self.world, mended)(calm)
        self._runs(3, QUIET)
        check_ledger(self.world, jobs_run=True)
        self.world.all_jobs_end(calm)
        self._runs(8, timedelta(minutes=13))
        self._too_much_for_a_run()
        check_nothing_held(self.world)
        check_ledger(self.world)
        if not self.restored:
            check_bill(self.world, off=self.off)
        self._adds_nothing()

    def _too_much_for_a_run(self) -> None:
        """What is larger than a run may give back, a person gives back as the refusal says, and nothing else."""
        if any(holding.count > MAX_RELEASED for holding in self.world.ours()):
            self.told.append(f"{self.site.now:%d %H:%M} a person releases")
            self._checked(lambda: self.site.release(force="max_released_instances"))
            self._runs(1, QUIET)

    def _runs(self, times: int, apart: timedelta) -> None:
        for _ in range(times):
            self.site.sandbox.advance(apart)
            self.told.append(f"{self.site.now:%d %H:%M} run")
            self._run(Random(0))

    def _adds_nothing(self) -> None:
        with self.site.store() as store:
            before = store.entries()
        self._runs(1, QUIET)
        with self.site.store() as store:
            if store.entries() != before:
                raise Broken("a run with nothing to do added to the ledger")


def play(sandbox: Sandbox, folder: Path, steps: Sequence[Step]) -> History:
    history = History(sandbox, folder)
    history.play(steps)
    return history
