"""The subject name strategies of Confluent's serializers, as one table."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SubjectStrategy(StrEnum):
    TOPIC_NAME = "TopicName"
    RECORD_NAME = "RecordName"
    TOPIC_RECORD_NAME = "TopicRecordName"


# Arguments: topic, full record name, and `key` or `value`.
_SUBJECTS: dict[SubjectStrategy, Callable[[str, str, str], str]] = {
    SubjectStrategy.TOPIC_NAME: lambda topic, record, part: f"{topic}-{part}",
    SubjectStrategy.RECORD_NAME: lambda topic, record, part: record,
    SubjectStrategy.TOPIC_RECORD_NAME: lambda topic, record, part: f"{topic}-{record}",
}


def subject_of(strategy: SubjectStrategy, topic: str, record: str, *, is_key: bool = False) -> str:
    """The subject of records with this full name in this topic."""
    return _SUBJECTS[strategy](topic, record, "key" if is_key else "value")
