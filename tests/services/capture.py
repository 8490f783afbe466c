"""`python -m tests.services.capture`: write `tests/fixtures/debezium` anew, from events of a real connector.

Each case is done once in the database, and read from the topics of one connector for each form.
"""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from laminae.codec.confluent import split
from tests.services.connect import running_connect
from tests.services.kafka import running_kafka
from tests.services.registry import running_registry
from tests.support.debezium import AVRO, FORMS, JSON, MARKS, new_database
from tests.support.debezium_cases import AT_FIRST, CASES, TABLES, TYPES
from tests.support.debezium_fixtures import PLACE, SCHEMAS, Message, keep
from tests.support.postgres import find_binaries, running_server
from tests.support.received import ends

if TYPE_CHECKING:
    from typing import Any

    from tests.support.debezium import Database

DECIMALS_AS_TEXT = "json-decimals-as-text"
OVERRIDES: dict[str, dict[str, str]] = {
    **{form: {} for form in FORMS},
    DECIMALS_AS_TEXT: {"decimal.handling.mode": "string"},
}
ANSWER_SECONDS = 30.0
CONTEXT = "__debezium.context."


def main() -> int:
    binaries = find_binaries()
    assert binaries is not None, "PostgreSQL is not installed (initdb, pg_ctl)"
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="laminae-capture-")))
        kafka = stack.enter_context(running_kafka(place / "kafka"))
        registry = stack.enter_context(running_registry(place / "registry"))
        database = stack.enter_context(new_database(stack.enter_context(running_server(binaries))))
        worker = stack.enter_context(running_connect(place / "connect", kafka, flush_milliseconds=200))
        database.execute(*TYPES, *TABLES)
        database.execute(*AT_FIRST)
        for form, override in OVERRIDES.items():
            kind = form if form in FORMS else JSON
            worker.run(database.prefix(form), database.config(kind, registry, form) | override)
        readers = {form: stack.enter_context(closing(Reader(kafka, database, form))) for form in OVERRIDES}
        for name, statements in (("snapshot", AT_FIRST), *CASES.items()):
            if name != "snapshot":
                for statement in statements:
                    database.execute(*([statement] if isinstance(statement, str) else statement))
            database.until_sent(worker, *OVERRIDES)
            shown = [each if isinstance(each, str) else "; ".join(each) for each in statements]
            for form, reader in readers.items():
                messages = reader.new()
                keep(form, name, shown, messages)
                print(f"{name:<24}{form:<24}{len(messages)} messages", flush=True)
        keep_schemas(registry)
    return 0


class Reader:
    """Reads what is new in the topics of a connector."""

    def __init__(self, address: str, database: Database, form: str) -> None:
        from confluent_kafka import Consumer

        self._address = address
        settings = {"bootstrap.servers": address, "group.id": str(uuid4()), "enable.auto.commit": False}
        self._consumer = Consumer(settings)
        self._prefix = f"{database.prefix(form)}.public."
        self._read: dict[tuple[str, int], int] = {}

    def close(self) -> None:
        self._consumer.close()

    def new(self) -> list[Message]:
        """What came since the last time, topic by topic and partition by partition."""
        from confluent_kafka import TopicPartition

        now = ends(self._address, self._prefix)
        self._consumer.assign([TopicPartition(*place, self._read.get(place, 0)) for place in now])
        found: dict[tuple[str, int], list[Message]] = {place: [] for place in now}
        left = sum(now.values()) - sum(self._read.values())
        for _ in range(left):
            message = self._consumer.poll(ANSWER_SECONDS)
            assert message is not None
            assert message.error() is None
            table, headers = message.topic().removeprefix(self._prefix), _headers(message)
            place = message.topic(), message.partition()
            found[place].append(Message(table, message.partition(), message.key(), message.value(), headers))
        self._read = now
        return [message for messages in found.values() for message in messages if message.table != MARKS]


def _headers(message: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Those that tell of the change; others name the connector and its run."""
    return tuple((name, value) for name, value in message.headers() or () if not name.startswith(CONTEXT))


def keep_schemas(registry: str) -> None:
    """The schemas that the messages name, by their ids."""
    ids: set[int] = set()
    for path in (PLACE / AVRO).glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            told = json.loads(line)
            ids |= {split(bytes.fromhex(told[part]["hex"])).schema_id for part in ("key", "value") if told[part]}
    found = {}
    for schema_id in sorted(ids):
        with urllib.request.urlopen(f"{registry}/schemas/ids/{schema_id}", timeout=ANSWER_SECONDS) as answer:
            found[schema_id] = json.loads(json.load(answer)["schema"])
    (PLACE / AVRO / SCHEMAS).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
