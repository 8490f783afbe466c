"""The subject of a record under each of the three strategies."""

from __future__ import annotations

import pytest

from laminae.registry import SubjectStrategy, subject_of


@pytest.mark.parametrize(
    ("strategy", "value", "key"),
    [
        ("TopicName", "orders-value", "orders-key"),
        ("RecordName", "shop.Order", "shop.Order"),
        ("TopicRecordName", "orders-shop.Order", "orders-shop.Order"),
    ],
)
def test_each_strategy_names_the_subject_as_confluents_serializers_do(strategy: str, value: str, key: str) -> None:
    chosen = SubjectStrategy(strategy)
    assert subject_of(chosen, "orders", "shop.Order") == value
    assert subject_of(chosen, "orders", "shop.Order", is_key=True) == key
