"""Laws of Avro resolution: over generated schemas, against the `avro` package, and against data that is really read."""

import io
import json

import avro.compatibility
import avro.errors
import avro.schema
import fastavro
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from laminae.errors import InvalidAvroSchema, LaminaeError
from laminae.schema.avro import AvroKind, AvroPrimitive, check_avro, find_incompatibilities, parse_avro
from laminae.schema.avro.nodes import AvroArray, AvroEnum, AvroFixed, AvroMap, AvroRecord, AvroUnion
from tests.support.examples import examples

thorough = settings(max_examples=examples(1_000), deadline=None)

PRIMITIVES = st.sampled_from([str(kind) for kind in AvroKind])
FIELD_NAMES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=3, unique=True)
SYMBOLS = st.lists(st.sampled_from(["P", "Q", "S"]), min_size=1, max_size=3, unique=True)
DEFAULTS = {
    "int": 1,
    "long": 2,
    "float": 0.5,
    "double": 1.5,
    "string": "x",
    "bytes": "x",
    "boolean": True,
    "null": None,
}


class Builder:
    """Draws one valid schema. Names are counted, so that two drawn schemas often mean the same type by one name."""

    def __init__(self, draw, namespaces=True):
        self.draw = draw
        self.namespaces = namespaces
        self.names = []
        self.count = 0

    def type(self, depth, in_union=False):
        makers = [self.primitive, self.primitive, self.reference]
        if depth:
            makers += [self.record, self.enum, self.fixed, self.array, self.map]
            makers += [] if in_union else [self.union, self.union]
        return self.draw(st.sampled_from(makers))(depth - 1)

    def primitive(self, depth):
        return self.draw(PRIMITIVES)

    def reference(self, depth):
        return self.draw(st.sampled_from(self.names)) if self.names else "int"

    def array(self, depth):
        return {"type": "array", "items": self.type(depth)}

    def map(self, depth):
        return {"type": "map", "values": self.type(depth)}

    def union(self, depth):
        branches = {}
        for _ in range(self.draw(st.integers(1, 3))):
            known = list(self.names)
            branch = self.type(depth, in_union=True)
            if branches.setdefault(branch_name(branch), branch) is not branch:
                self.names = known
        return list(branches.values())

    def named(self, kind, **attributes):
        node = {"type": kind, "name": f"T{self.count}", "namespace": "", **attributes}
        self.count += 1
        if self.namespaces:
            node["namespace"] = self.draw(st.sampled_from(["", "", "x", "y"]))
        return node

    def define(self, node):
        self.names.append(branch_name(node))
        return node

    def fixed(self, depth):
        return self.define(self.named("fixed", size=self.draw(st.integers(1, 2))))

    def enum(self, depth):
        symbols = self.draw(SYMBOLS)
        default = {"default": symbols[0]} if self.draw(st.booleans()) else {}
        return self.define(self.named("enum", symbols=symbols, **default))

    def record(self, depth):
        node = self.named("record", fields=[])
        for name in self.draw(FIELD_NAMES):
            node["fields"].append(self.field(name, depth))
        if self.draw(st.booleans()):
            # A record may only contain itself where a value can end: under null, as here.
            node["fields"].append({"name": "self", "type": ["null", branch_name(node)], "default": None})
        return self.define(node)

    def field(self, name, depth):
        field = {"name": name, "type": self.type(depth)}
        if isinstance(field["type"], str) and field["type"] in DEFAULTS and self.draw(st.booleans()):
            field["default"] = DEFAULTS[field["type"]]
        return field


def branch_name(branch):
    if isinstance(branch, str):
        return branch
    if "name" in branch:
        return ".".join(filter(None, (branch["namespace"], branch["name"])))
    return branch["type"]


@st.composite
def schemas(draw, namespaces=True):
    return Builder(draw, namespaces).type(3)


def evolve(draw, node):
    """One version further: here and there a promotion, a lost symbol, a new field, an alias, one branch more."""
    rarely = st.integers(0, 5).map(lambda n: n == 0)
    if isinstance(node, list):
        return draw(st.permutations([evolve(draw, branch) for branch in node]))
    if isinstance(node, str):
        return draw(PRIMITIVES) if node in DEFAULTS and draw(rarely) else node
    changed = {key: evolve(draw, value) if key in ("items", "values") else value for key, value in node.items()}
    if "fields" in node:
        kept = [field for field in node["fields"] if not draw(rarely)]
        changed["fields"] = [evolve_field(draw, field) for field in kept]
        if draw(rarely):
            changed["fields"].append({"name": "new", "type": "int"})
        if draw(rarely):
            changed["fields"].append({"name": "extra", "type": ["null", "int"], "default": None})
    if "symbols" in node and "default" not in node and draw(rarely):
        changed["symbols"] = draw(SYMBOLS)
    if "size" in node and draw(rarely):
        changed["size"] = 3
    return changed


def evolve_field(draw, field):
    changed = {**field, "type": evolve(draw, field["type"])}
    if changed["type"] != field["type"]:
        changed.pop("default", None)
    if draw(st.integers(0, 7)) == 0:
        changed |= {"name": f"{field['name']}2", "aliases": [field["name"]]}
    elif not isinstance(changed["type"], list) and draw(st.integers(0, 7)) == 0:
        changed |= {"type": [changed["type"]] if changed["type"] == "null" else ["null", changed["type"]]}
        changed.pop("default", None)
    return changed


@st.composite
def pairs(draw, namespaces=True):
    old = draw(schemas(namespaces))
    new = evolve(draw, old) if draw(st.integers(0, 3)) else draw(schemas(namespaces))
    try:
        parse_avro(json.dumps(new))
    except InvalidAvroSchema:
        assume(False)  # the change took away a definition that is used elsewhere, or a default that fitted
    return (new, old) if draw(st.booleans()) else (old, new)


def text(source):
    return json.dumps(source)


def reads(reader, writer):
    return not find_incompatibilities(parse_avro(text(reader)), parse_avro(text(writer)))


@thorough
@given(schemas())
def test_every_schema_reads_itself(schema):
    assert find_incompatibilities(parse_avro(text(schema)), parse_avro(text(schema))) == ()


@thorough
@given(pairs())
def test_verdict_is_compatible_exactly_when_there_is_no_reason(pair):
    verdict = check_avro(text(pair[0]), [text(pair[1])])
    assert verdict.is_compatible == (not verdict.reasons) == reads(*pair)


@thorough
@given(pairs())
def test_full_is_backward_and_forward(pair):
    new, old = map(text, pair)
    backward, forward, full = (check_avro(new, [old], mode) for mode in ("BACKWARD", "FORWARD", "FULL"))
    assert full.is_compatible == (backward.is_compatible and forward.is_compatible)
    assert full.reasons == backward.reasons + forward.reasons


@thorough
@given(pairs())
def test_forward_is_backward_with_the_roles_exchanged(pair):
    new, old = map(text, pair)
    assert check_avro(new, [old], "FORWARD").is_compatible == check_avro(old, [new], "BACKWARD").is_compatible


@thorough
@given(pairs(), pairs(), st.sampled_from(["BACKWARD", "FORWARD", "FULL"]))
def test_transitive_is_the_conjunction_over_the_history(first, second, mode):
    new, *history = map(text, (*first, *second))
    each = [check_avro(new, [old], mode).is_compatible for old in history]
    assert check_avro(new, history, f"{mode}_TRANSITIVE").is_compatible == all(each)
    assert check_avro(new, history, mode).is_compatible == each[-1]


@thorough
@given(pairs(namespaces=False))
def test_answer_is_that_of_the_avro_package(pair):
    """Without namespaces only: that checker compares aliases as they are written and not as full names."""
    try:
        reader, writer = (avro.schema.parse(text(source)) for source in pair)
    except avro.errors.SchemaParseException:
        assume(False)  # that parser wants a type defined before it is used; Java 1.12 does not
    answer = avro.compatibility.ReaderWriterCompatibilityChecker().get_compatibility(reader, writer)
    expected = answer.compatibility is avro.compatibility.SchemaCompatibilityType.compatible
    assert reads(*pair) == expected


class Values:
    """Draws a value of a parsed type, with every union branch tagged, so that no writer has to guess."""

    def __init__(self, draw, schema):
        self.draw = draw
        self.schema = schema

    def of(self, node, depth=0):
        match self.schema.resolve(node):
            case AvroPrimitive(kind):
                return self.draw(SCALARS[kind])
            case AvroFixed(_, size):
                return b"f" * size
            case AvroEnum(_, symbols):
                return self.draw(st.sampled_from(symbols))
            case AvroArray(items):
                return [self.of(items, depth + 1) for _ in range(self.size(depth))]
            case AvroMap(values):
                return {str(key): self.of(values, depth + 1) for key in range(self.size(depth))}
            case AvroRecord(_, fields):
                return {field.name: self.of(field.type, depth + 1) for field in fields}
            case AvroUnion(branches):
                ends = [branch for branch in branches if branch.branch_name == "null"] if depth > 6 else []
                branch = self.draw(st.sampled_from(ends or branches))
                value = self.of(branch, depth + 1)
                return None if branch.branch_name == "null" else (branch.branch_name, value)

    def size(self, depth):
        return 0 if depth > 6 else self.draw(st.integers(0, 2))


SCALARS = {
    AvroKind.NULL: st.none(),
    AvroKind.BOOLEAN: st.booleans(),
    AvroKind.INT: st.integers(-(2**31), 2**31 - 1),
    AvroKind.LONG: st.integers(-(2**63), 2**63 - 1),
    AvroKind.FLOAT: st.floats(width=32),
    AvroKind.DOUBLE: st.floats(),
    # Bytes may be read as a string, and then have to be UTF-8: Avro promises nothing for others.
    AvroKind.BYTES: st.text(max_size=3).map(str.encode),
    AvroKind.STRING: st.text(max_size=3),
}


def with_defaults_as_text(node):
    """The schema of what fastavro makes of it: it gives a default of bytes as the text that stands for it in JSON."""
    if isinstance(node, list):
        return [with_defaults_as_text(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {name: with_defaults_as_text(each) for name, each in node.items() if name != "default"}
    if node.get("type") == "bytes" and "default" in node:
        made["type"] = ["bytes", "string"]
    return made


@thorough
@given(st.data(), pairs())
@example(
    None,
    (
        {"type": "record", "name": "T0", "namespace": "", "fields": [{"name": "a", "type": "bytes", "default": "x"}]},
        {"type": "record", "name": "T0", "namespace": "", "fields": []},
    ),
)
def test_data_of_the_old_schema_is_read_where_the_answer_is_compatible(data, pair):
    reader, writer = pair
    assume(reads(reader, writer))
    value = {} if data is None else Values(data.draw, parse_avro(text(writer))).of(parse_avro(text(writer)).root)
    try:
        parsed_reader, parsed_writer = (fastavro.parse_schema(source) for source in (reader, writer))
    except fastavro.schema.UnknownType:
        assume(False)  # that parser wants a type defined before it is used; Java 1.12 does not
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, parsed_writer, value)
    stream.seek(0)
    found = fastavro.schemaless_reader(stream, parsed_writer, parsed_reader)
    assert not stream.read(), "bytes of the record were left over"
    shown = fastavro.parse_schema(with_defaults_as_text(reader))
    assert fastavro.validate(found, shown, raise_errors=False), f"{found!r} is no value of {reader}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | PRIMITIVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "fields", "items", "values", "symbols", "size", "default", "aliases", "x"]
            ),
            inner | st.sampled_from(["record", "enum", "fixed", "array", "map", "R", "a.b", "-"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@thorough
@given(JSON | st.text() | schemas(), JSON | schemas())
def test_whatever_is_given_ends_in_a_verdict_or_a_laminae_error(new, old):
    try:
        check_avro(new, [old], "FULL")
    except LaminaeError as error:
        assert error.code == "INVALID_AVRO_SCHEMA"  # noqa: PT017 - no error at all is right as well
