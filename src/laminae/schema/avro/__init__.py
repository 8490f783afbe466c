"""Avro schemas: parse and validate them, and judge whether one can read what another has written.

Answers are those of Apache Avro for Java 1.12 and Confluent's registry. Needs no Avro library; decodes no data.
"""

from laminae.schema.avro.causes import find_incompatibilities
from laminae.schema.avro.check import check_avro
from laminae.schema.avro.incompatibility import KINDS, Incompatibility, IncompatibilityKind
from laminae.schema.avro.nodes import (
    AvroArray,
    AvroDefinite,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroKind,
    AvroMap,
    AvroNamed,
    AvroPrimitive,
    AvroRecord,
    AvroReference,
    AvroSchema,
    AvroType,
    AvroUnion,
    JsonValue,
)
from laminae.schema.avro.parser import AvroSource, parse_avro

__all__ = [
    "AvroArray",
    "AvroDefinite",
    "AvroEnum",
    "AvroField",
    "AvroFixed",
    "AvroKind",
    "AvroMap",
    "AvroNamed",
    "AvroPrimitive",
    "AvroRecord",
    "AvroReference",
    "AvroSchema",
    "AvroSource",
    "AvroType",
    "AvroUnion",
    "Incompatibility",
    "IncompatibilityKind",
    "JsonValue",
    "KINDS",
    "check_avro",
    "find_incompatibilities",
    "parse_avro",
]
