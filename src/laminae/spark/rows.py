"""Rows of an epoch as a frame that is there already: `laminae.spark.contract.Rows`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.spark.planned import PlannedFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from laminae.spark.template import Template


@dataclass(frozen=True, slots=True)
class FrameRows:
    """A frame with an Observation in it is not bare: under another plan nobody would hear of what it has seen."""

    made: DataFrame
    is_bare: bool = False

    def frame(self) -> DataFrame:
        return self.made

    def under(self, template: Template) -> DataFrame:
        return template.over(self.made) if isinstance(self.made, PlannedFrame) else template.upon(self.made).frame


@dataclass(frozen=True, slots=True)
class WatchedRows(FrameRows):
    """Their tasks say themselves how many there are, and whether one needs a closer look."""

    refused: Callable[[], bool] = lambda: False
    count: Callable[[], int] = lambda: 0
