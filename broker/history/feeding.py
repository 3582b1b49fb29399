"""Live queues into the history, look by look. What was not read says nothing: nothing leaves because of it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from broker.config import HistorySettings
from broker.history.job_facts import fact
from broker.model.snapshot import SourceView, Trust
from state.encode import from_us, to_us
from state.history.store import History
from state.history.watching import Listing, Noticed
from state.history.words import Words

_FORGET_EVERY = timedelta(days=1)


def feed(history: History, views: Sequence[SourceView], now: datetime, settings: HistorySettings) -> Noticed:
    """Raises StateError."""
    if settings.hash_names:
        history.hide_names()
    words = history.words()
    listings = [_listing(view, words, now) for view in views if view.trust is not Trust.UNKNOWN]
    noticed = history.notice(listings, words) if listings else Noticed()
    oldest = now - timedelta(days=settings.keep_days)
    if from_us(history.rules.kept_since) < oldest - _FORGET_EVERY:
        history.forget(to_us(oldest))
    return noticed


def _listing(view: SourceView, words: Words, now: datetime) -> Listing:
    """Of what a listing is not sure of, it only says what is there."""
    at = to_us(min(view.as_of or now, now))
    source = words.source[view.source]
    facts = tuple(fact(job, words, feed=source, seen=at) for job in view.jobs)
    return Listing(source, at, view.trust is Trust.COMPLETE, facts)
