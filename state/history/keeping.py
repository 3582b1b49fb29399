"""What is forgotten, and what is hidden."""

from sqlalchemy import Connection

from state.history.words import Words
from state.history.writing import Write

_CHUNK = 20_000
_OVER = """
CREATE TEMP TABLE history_over AS SELECT cluster, id FROM history_attempt GROUP BY cluster, id
HAVING max(CASE WHEN told = 0 AND feed IS NOT NULL THEN 9223372036854775807 ELSE seen END) < ?
"""
_ATTEMPTS = """
DELETE FROM history_attempt WHERE (cluster, id) IN
(SELECT cluster, id FROM temp.history_over WHERE rowid > ? AND rowid <= ?)
"""
_RESIZES = """
DELETE FROM history_resize WHERE NOT EXISTS (SELECT 1 FROM history_attempt WHERE
(history_attempt.cluster, history_attempt.id) = (history_resize.cluster, history_resize.id))
"""
_WORDS = """
DELETE FROM history_word WHERE kind != 'source' AND id NOT IN
(SELECT cluster FROM history_attempt UNION SELECT tenant FROM history_attempt
UNION SELECT ifnull(user, 0) FROM history_attempt UNION SELECT ifnull(queue, 0) FROM history_attempt
UNION SELECT ifnull(model, 0) FROM history_attempt)
"""


def forget(write: Write, before: int) -> int:
    """Jobs that were over before then, in short transactions. Returns how many."""
    with write() as connection:
        ask = connection.exec_driver_sql
        ask("DROP TABLE IF EXISTS temp.history_over")
        ask(_OVER, (before,))
        count = int(ask("SELECT count(*) FROM temp.history_over").scalar() or 0)
    for first in range(0, count, _CHUNK):
        with write() as connection:
            connection.exec_driver_sql(_ATTEMPTS, (first, first + _CHUNK))
    with write() as connection:
        for statement in (_RESIZES, _WORDS, "DROP TABLE temp.history_over"):
            connection.exec_driver_sql(statement)
    return count


def hide(connection: Connection, words: Words) -> None:
    """Users and job names that are in already become aliases as those to come."""
    ask = connection.exec_driver_sql
    users = ask("SELECT id, text FROM history_word WHERE kind = 'user'").fetchall()
    ask("CREATE TEMP TABLE history_alias (old INTEGER PRIMARY KEY, new INTEGER)")
    for old, text in users:
        ask("INSERT INTO history_alias VALUES (?, ?)", (old, words.user[text]))
    for word in words.fresh:
        ask("INSERT OR IGNORE INTO history_word VALUES (?, ?, ?)", word)
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.create_function("history_name", 1, words.name, deterministic=True)
    ask(
        "UPDATE history_attempt SET mark = NULL, name = history_name(name), "
        "user = (SELECT new FROM temp.history_alias WHERE old = user)"
    )
    ask("DELETE FROM history_word WHERE id IN (SELECT old FROM temp.history_alias)")
    ask("DROP TABLE temp.history_alias")
