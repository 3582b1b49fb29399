from pathlib import Path

import pytest

from broker.config.schema import FORMATS as CONFIGURABLE
from broker.queues.normal import FIELDS
from broker.queues.parsed import Unreadable
from broker.queues.registry import FORMATS, detect

DOCS = Path(__file__).resolve().parents[2] / "docs" / "queues.md"


def test_every_format_can_be_configured_and_is_documented() -> None:
    assert set(CONFIGURABLE) == {"auto", *FORMATS}
    text = DOCS.read_text()
    assert all(f"| `{name}` |" in text for name in FORMATS)


def test_every_field_of_the_normal_form_is_documented() -> None:
    text = DOCS.read_text()
    assert [name for name in FIELDS if f"`{name}`" not in text] == []


@pytest.mark.parametrize("text", ["hello\nworld\n", "a,b,c\n1,2,3\n", "JobID  State\n1  R\n"])
def test_what_is_in_no_format_is_refused_with_its_beginning(text: str) -> None:
    with pytest.raises(Unreadable, match=text[:5]):
        detect(text)
