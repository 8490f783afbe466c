"""`check_avro`: may this Avro schema follow that history under a compatibility mode?

Answers as Apache Avro's SchemaCompatibility and Confluent's registry do. Deciding is in `resolution`, why in `causes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from laminae.errors import InvalidAvroSchema, InvalidOption
from laminae.schema.avro.causes import find_incompatibilities
from laminae.schema.avro.parser import parse_avro
from laminae.schema.compatibility import CompatibilityMode, Compatible, EvolutionVerdict, Incompatible, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.schema.avro.nodes import AvroSchema
    from laminae.schema.avro.parser import AvroSource

BACKWARD_TEXT = "the new schema cannot read data of version {version}"
FORWARD_TEXT = "version {version} cannot read data of the new schema"


def check_avro(new: AvroSource, history: Sequence[AvroSource], mode: str = "BACKWARD") -> EvolutionVerdict:
    """Judge `new` against the last version of `history` (oldest first), or every version if `mode` is transitive."""
    judged = CompatibilityMode.parse(mode)
    if isinstance(history, str | bytes) or not isinstance(history, Sequence):
        problem = f"{type(history).__name__} is one schema or none, not a list of them"
        raise InvalidOption(
            option="history", owner="check_avro", problem=problem, advice="Give a list of schemas, oldest first."
        )
    proposed = parse_avro(new)
    if judged is CompatibilityMode.NONE:
        return Compatible()
    first = 1 if judged.is_transitive else max(len(history), 1)
    reasons: list[Reason] = []
    for version, source in enumerate(history[first - 1 :], start=first):
        earlier = _parse_version(source, version)
        if judged.requires_backward:
            reasons.extend(_reasons(proposed, earlier, BACKWARD_TEXT, version))
        if judged.requires_forward:
            reasons.extend(_reasons(earlier, proposed, FORWARD_TEXT, version))
    return Incompatible((), tuple(reasons)) if reasons else Compatible()


def _parse_version(source: AvroSource, version: int) -> AvroSchema:
    try:
        return parse_avro(source)
    except InvalidAvroSchema as error:
        params = error.params
        raise InvalidAvroSchema(path=params["path"], problem=f"{params['problem']} (version {version})") from None


def _reasons(reader: AvroSchema, writer: AvroSchema, direction: str, version: int) -> Iterator[Reason]:
    for cause in find_incompatibilities(reader, writer):
        place = f"{cause.field_path}: " if cause.field_path else ""
        text = f"{place}{direction.format(version=version)}: {cause.text}"
        yield Reason(cause.path, str(cause.kind), text, cause.remedy, version)
