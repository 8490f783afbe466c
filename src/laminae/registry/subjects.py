"""Which subject the schemas of a topic have: the three strategies of Confluent's serializers, as one table."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SubjectStrategy(StrEnum):
    TOPIC_NAME = "TopicName"
    RECORD_NAME = "RecordName"
    TOPIC_RECORD_NAME = "TopicRecordName"


# Of topic, full name of the record, and `key` or `value`.
_SUBJECTS: dict[SubjectStrategy, Callable[[str, str, str], str]] = {
    SubjectStrategy.TOPIC_NAME: lambda topic, record, part: f"{topic}-{part}",
    SubjectStrategy.RECORD_NAME: lambda topic, record, part: record,
    SubjectStrategy.TOPIC_RECORD_NAME: lambda topic, record, part: f"{topic}-{record}",
}


def subject_of(strategy: SubjectStrategy, topic: str, record: str, *, is_key: bool = False) -> str:
    """The subject of a record of this full name in this topic."""
    return _SUBJECTS[strategy](topic, record, "key" if is_key else "value")
