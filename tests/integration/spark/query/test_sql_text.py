"""SQL text means in laminae what it means in Spark: by Spark's own lexer, parser, function registry and answers."""

import itertools
import random
import re

import pytest
from sqlglot import exp

import laminae as lm
from laminae.errors import FunctionNotAllowed, InvalidOption, LaminaeError, QueryFailed, UnknownObject, UnsupportedSql
from laminae.spark.catalyst.jvm import PARSER, scala_object
from laminae.sql.spark_tokens import Kind, UnclosedToken, spark_tokens
from laminae.views.sql.function_names import BUILT_IN, OUTSIDE, SYNTAX
from laminae.views.sql.sql_text import parse_text, refuse_changed, sql_of
from laminae.views.sql.verbatim import Written

LITERALS = [
    *(
        "'it''s'",
        '"d""q"',
        "'a' 'b'",
        "'a'\n'b''c'",
        "r'a\\b'",
        'R"x\'y"',
        "'\\u0041\\U00000042\\101\\0\\Z'",
        "'\\%\\_'",
    ),
    *(
        "'\\'",
        "'\\\\'",
        "'\\'x'",
        "''",
        "'--'",
        "'/*'",
        "';'",
        "'${env:HOME}'",
        "0x1F",
        "1L",
        "1S",
        "1Y",
        "1.5BD",
        "1e3",
    ),
    *(
        "1.5e-3D",
        "2F",
        "1.",
        ".5",
        "1e3BD",
        "X'1F00'",
        "x'ab'",
        "DATE'2024-01-31'",
        "TIMESTAMP '2024-01-31 01:02:03.5Z'",
    ),
    *(
        "TIMESTAMP_NTZ'2024-01-31 01:02'",
        "INTERVAL 1 DAY 2 HOURS",
        "INTERVAL '1-2' YEAR TO MONTH",
        "INTERVAL -3 SECONDS",
    ),
    *("INTERVAL '3 days -2 hours'", "NULL", "TRUE", "false", "`a b`.`c``d`", "s.f.g.h.i.j", "TIME'01:02:03'"),
]
BINARY = "OR AND = == <> != < <= > >= <=> | ^ & << >> >>> + - || * / % DIV".split()  # noqa: SIM905  # a list of signs
SHAPES = [
    *("a NOT LIKE b", "a LIKE b ESCAPE '/'", "a ILIKE ANY ('x', 'y')", "a NOT RLIKE b", "a REGEXP b", "a IS NOT NULL"),
    *("a IS NOT DISTINCT FROM b + 1", "a IS UNKNOWN", "a BETWEEN 1 AND b + 2 AND c", "a NOT IN (1, b, 'x')", "- - a"),
    *("!a = b", "NOT a IN (1) OR b", "-a * b", "~a & b", "CAST(a AS DECIMAL(10, 2))", "TRY_CAST(a AS ARRAY<INT>)"),
    *("a::MAP<STRING, ARRAY<INT>>", "a::INTERVAL DAY TO SECOND", "CAST(a AS STRUCT<x: INT, `y z`: STRING>)"),
    *("v:a.b[0]['c']::int", "m['k'].f[0].g", "f(a).b", "CASE a WHEN 1 THEN b ELSE c END", "CASE WHEN a THEN b END"),
    *("TRIM(BOTH 'x' FROM a)", "TRIM(LEADING FROM a)", "TRIM(a)", "EXTRACT(YEAR FROM a)", "SUBSTRING(a FROM 2 FOR 3)"),
    *(
        "OVERLAY(a PLACING b FROM 2)",
        "POSITION('x' IN a)",
        "TIMESTAMPADD(DAY, 1, a)",
        "DATEDIFF(a, b)",
        "DATE_ADD(day, 3)",
    ),
    *(
        "transform(a, x -> x.y + z)",
        "aggregate(a, 0, (p, q) -> p + q, r -> r * 2)",
        "struct(a AS b, c)",
        "a COLLATE UNICODE",
    ),
    *(
        "count(DISTINCT a)",
        "count(*)",
        "sum(a) FILTER (WHERE b > 1)",
        "first(a) IGNORE NULLS",
        "any_value(a IGNORE NULLS)",
    ),
    *("percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", "`+`(a, b)", "if(a, b, c)", "left(a, 1)", "(a, b)", "((a))"),
    *(
        "mask(a, lowerChar => 'q')",
        "exists(a, x -> x > 1)",
        "a /* c */ + -- d\n b",
        "a /* /* n */ */ - -b",
        "current_date",
    ),
]


@pytest.fixture(scope="module")
def parser(spark):
    return scala_object(spark.sparkContext._jvm, PARSER)


def same(parser, one, other):
    """Whether Spark reads two texts alike: the same tree, names of functions in any case, literals exact."""
    first, second = (re.sub(r"#\d+", "#", parser.parsePlan(text).toString()) for text in (one, other))
    literals = [[token.text for token in spark_tokens(text) if token.kind is Kind.STRING] for text in (one, other)]
    return first.lower() == second.lower() and literals[0] == literals[1]


def query_of(expression):
    return f"SELECT {expression} FROM t"  # noqa: S608  # of the tables above


def handed_over(text):
    """What laminae hands to Spark of a query; None where it is refused."""
    try:
        tree = parse_text(text)
        refuse_changed(text, tree)
    except LaminaeError:
        return None
    return sql_of(tree)


def builtin_functions(spark):
    return spark.sparkContext._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()


def examples(spark):
    for info in builtin_functions(spark):
        yield from re.findall(r"> (SELECT.*?);\s*$", info.getExamples(), re.MULTILINE | re.DOTALL)


def test_every_expression_reaches_spark_as_it_was_written(spark, parser):
    operators = [f"a {one} b {two} c" for one, two in itertools.product(BINARY, repeat=2)]
    texts = [*map(query_of, [*LITERALS, *operators, *SHAPES]), *examples(spark)]
    valid, refused, changed = 0, [], []
    for text in texts:
        try:
            parser.parsePlan(text)
        except Exception:  # noqa: BLE001  # what Spark itself cannot read is nothing to compare
            continue
        valid += 1
        printed = handed_over(text)
        if printed is None:
            refused.append(text)
        elif not same(parser, text, printed):
            changed.append((text, printed))
    print(f"{valid} queries, {len(refused)} refused by name, {len(changed)} changed")  # noqa: T201  # read by people
    assert changed == []
    assert valid > 1500
    assert len(refused) < valid // 20, refused
    assert not [text for text in refused if " FROM t" in text and "VALUES" not in text], refused


def test_the_planner_sees_the_tree_that_spark_sees(parser):
    """Every operand in parentheses of its own: where a precedence were wrong, Spark would read another tree."""

    def wrapped(node):
        is_binary = isinstance(node, exp.Binary) and not isinstance(node, exp.Dot)
        if isinstance(node, Written) or is_binary or isinstance(node, exp.Not):
            operands = [part for part in node.iter_expressions() if not isinstance(part, exp.Var)]
            for operand in operands:
                operand.replace(exp.Paren(this=wrapped(operand.copy())))
        return node

    unary = ["NOT a {} b", "- a {} b", "~a {} b", "a {} b IS NULL", "a {} b LIKE c", "a {} b IN (1)", "a {} b::int"]
    texts = [f"a {one} b {two} c" for one, two in itertools.product(BINARY, repeat=2)]
    for text in [*texts, *(each.format(sign) for each in unary for sign in BINARY)]:
        query = query_of(text)
        try:
            parser.parsePlan(query)
        except Exception:  # noqa: BLE001  # not all of them are expressions
            continue
        tree = parse_text(query)
        tree.set("expressions", [wrapped(tree.expressions[0])])
        assert same(parser, query, sql_of(tree)), (query, sql_of(tree))


def test_tokens_are_cut_where_sparks_lexer_cuts_them(spark):
    jvm = spark.sparkContext._jvm
    package = jvm.org.apache.spark.sql.catalyst.parser
    parts = [*LITERALS, "a", "1a", "é", "`b``c`", "/* c /* d */ */", "-- x\n", "-- y\\\nz\n", " ", "\u00a0", "\n"]
    parts += [*"()-+*/=;.,?:", "->", "=>", "::", "||", "<=", "<>", "!=", "1.5", "a.1", "a.1b", "1..2"]
    choose = random.Random(7)
    for _ in range(400):
        text = "".join(choose.choice(parts) + choose.choice(["", " "]) for _ in range(choose.randint(1, 8)))
        lexer = package.SqlBaseLexer(package.UpperCaseCharStream(jvm.org.antlr.v4.runtime.CharStreams.fromString(text)))
        visible = [token for token in lexer.getAllTokens() if token.getChannel() == 0]
        expected = "|".join(str(token.getText()) for token in visible)
        try:
            found = "|".join(token.text for token in spark_tokens(text))
        except UnclosedToken:
            continue
        # Shifts and a few others are several tokens here.
        assert found.replace("|", "") == expected.replace("|", ""), text
        strings = [token.text for token in spark_tokens(text) if token.kind is Kind.STRING]
        kinds = package.SqlBaseLexer.VOCABULARY
        theirs = [str(token.getText()) for token in visible if _is_string(str(kinds.getSymbolicName(token.getType())))]
        assert strings == theirs, text


def _is_string(name):
    return "STRING" in name and "DOLLAR" not in name


def test_the_function_tables_are_those_of_the_running_spark(spark):
    state = spark._jsparkSession.sessionState()
    names = set()
    for registry in (state.functionRegistry(), state.tableFunctionRegistry()):
        iterator = registry.listFunction().iterator()
        while iterator.hasNext():
            names.add(iterator.next().funcName())
    builtin = {
        info.getName()
        for info in spark.sparkContext._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    }
    assert builtin - BUILT_IN - OUTSIDE.keys() == set()
    assert (BUILT_IN | OUTSIDE.keys()) - names - builtin - SYNTAX - {"!=", "<>", "||", "case"} == set()


@pytest.fixture(scope="module")
def home(spark, tmp_path_factory):
    with lm.connect(str(tmp_path_factory.mktemp("home")), spark=spark) as db:
        db.sql("CREATE SOURCE v (id INT, k STRING, n INT, j STRING)")
        rows = [(1, "x", 10, '{"a": [7]}'), (2, "y", 20, '{"a": [8]}'), (3, "x", 30, "{}")]
        db.insert("v", [dict(zip(("id", "k", "n", "j"), row, strict=True)) for row in rows])
        db.run()
        yield db


SELECTS = [
    "SELECT * FROM (SELECT k, n FROM v) PIVOT (sum(n) FOR k IN ('x', 'y'))",
    "SELECT id, w FROM v UNPIVOT (w FOR c IN (n)) ORDER BY id",
    "SELECT /*+ BROADCAST(w) */ v.id, w.n FROM v JOIN v w ON v.id = w.id ORDER BY 1",
    "TABLE v",
    "SELECT parse_json(j):a[0]::int AS a FROM v ORDER BY id",
    """SELECT 'it''s', "d""q", 'a' 'b', r'a\\b', id FROM v WHERE k = 'x' ORDER BY id""",
    "FROM v |> WHERE n > 10 |> SELECT id |> ORDER BY id",
    "SELECT id, e FROM v LATERAL VIEW explode(array(n, n + 1)) t AS e ORDER BY id, e",
    "SELECT t.a, v.id FROM VALUES (1), (2) AS t(a) JOIN v ON v.id = t.a ORDER BY 1",
    "WITH v AS (SELECT id + 1 AS id FROM v) SELECT id FROM v ORDER BY id",
    "SELECT id FROM v WHERE n = (SELECT max(n) FROM v) OR EXISTS (SELECT 1 FROM v u WHERE u.id > v.id) ORDER BY id",
    "SELECT '${env:HOME}', '${system:user.home}', '${spark.app.name}' FROM v",
    "SELECT id FROM v TABLESAMPLE (100 PERCENT) ORDER BY id",
    "SELECT k, count(*) c FROM v GROUP BY ALL HAVING c > 1",
]


def test_a_select_is_answered_as_spark_answers_it(home, spark):
    own = spark.newSession()
    own.conf.set("spark.sql.variable.substitute", "false")
    rows = [tuple(row) for row in home.sql("SELECT * FROM v").fetchall()]
    own.createDataFrame(rows, "id INT, k STRING, n INT, j STRING").createOrReplaceTempView("v")
    for text in SELECTS:
        expected = [tuple(row) for row in own.sql(text).collect()]
        assert sorted(home.sql(text).fetchall(), key=repr) == sorted(expected, key=repr), text
    joined = "SELECT s.name, v.id FROM laminar_catalog.sources s JOIN v ON s.name = 'v' ORDER BY v.id LIMIT 1"
    assert home.sql(joined).fetchall() == [("v", 1)]
    assert home.sql("SELECT sources.name FROM laminar_catalog.sources, v WHERE v.id = 1").fetchall() == [("v",)]
    assert home.sql("SELECT _op, v.id FROM CHANGES OF v JOIN v USING (id) ORDER BY id").fetchall()[0] == ("+I", 1)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM v", FunctionNotAllowed),
        ("SELECT java_method('java.lang.System', 'getenv', 'HOME')", FunctionNotAllowed),
        ("SELECT * FROM v WHERE id = (SELECT try_reflect('java.lang.System', 'getenv', 'HOME'))", FunctionNotAllowed),
        ("SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME')", FunctionNotAllowed),
        ("SELECT `reflect`('java.lang.System', 'getenv', 'HOME')", FunctionNotAllowed),
        ("SELECT input_file_name() FROM v", FunctionNotAllowed),
        ("SELECT from_xml(j, 'a INT', map('rowValidationXSDPath', '/etc/passwd')) FROM v", FunctionNotAllowed),
        ("SELECT * FROM python_worker_logs()", FunctionNotAllowed),
        ("SELECT my_own(id) FROM v", FunctionNotAllowed),
        ("SELECT * FROM json.`/etc/passwd`", UnknownObject),
        ("SELECT * FROM text.`/etc/passwd`", UnknownObject),
        ("SELECT * FROM v WHERE id IN (SELECT value FROM text.`/etc/passwd`)", UnknownObject),
        ("SELECT * FROM spark_catalog.default.t", UnknownObject),
        ("SELECT * FROM theirs", UnknownObject),
        ("SELECT TRANSFORM(id) USING 'cat' AS (x) FROM v", LaminaeError),
        ("FROM v INSERT INTO theirs SELECT id", LaminaeError),
        ("WITH a AS (SELECT 1) INSERT INTO theirs SELECT * FROM a", LaminaeError),
        ("SELECT * FROM v VERSION AS OF 3", UnsupportedSql),
        ("SELECT * FROM STREAM v", LaminaeError),
        ("SELECT id FROM v WHERE id = :p", QueryFailed),
        ("SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getenv', 'PATH') FROM v", UnsupportedSql),
        (
            "SELECT count(*) OVER w FROM v WINDOW w AS (PARTITION BY reflect('java.lang.System', 'getenv', 'PATH'))",
            FunctionNotAllowed,
        ),
        (
            "SELECT from_avro(CAST(id AS BINARY), '\"int\"', map('avroSchemaUrl', 'file:///x')) FROM v",
            FunctionNotAllowed,
        ),
    ],
)
def test_a_select_has_no_door_out_of_its_home(home, spark, text, error):
    spark.range(1).createOrReplaceTempView("theirs")
    try:
        with pytest.raises(error):
            home.sql(text).fetchall()
    finally:
        spark.catalog.dropTempView("theirs")


def test_functions_of_ones_own_are_named_in_a_setting(home, spark):
    spark.udf.register("my_own", lambda n: n + 1, "int")
    with pytest.raises(FunctionNotAllowed):
        home.sql("SELECT my_own(id) FROM v").fetchall()
    with pytest.raises(InvalidOption, match="reflect"):
        home.sql("SET allowed_functions = 'reflect'")
    home.sql("SET allowed_functions = 'my_own, other'")
    assert home.sql("SELECT my_own(id) FROM v WHERE id = 1").fetchall() in ([(2,)], [("2",)])


def test_views_compute_what_their_text_says_and_no_variable_is_put_in(db, spark):
    db.sql("CREATE SOURCE s (id INT) WITH (evolve = 'auto')")
    db.sql(
        """CREATE MATERIALIZED VIEW texts AS SELECT id, 'it''s' AS a, "d""q" AS b, '${env:HOME}' AS c, r'a\\b' AS d,
           id NOT IN (2, 3) AS e, id DIV 2 AS f, nvl(CAST(NULL AS STRING), 'a;b') AS g FROM s"""
    )
    db.sql(
        "CREATE MATERIALIZED VIEW grouped AS SELECT concat('${env:HOME}', 'o''') AS k, count(*) AS n FROM s GROUP BY 1"
    )
    db.insert("s", [{"id": 1, "${env:HOME}": "kept"}])
    db.run()
    expected = (1, "it's", 'd"q', "${env:HOME}", "a\\b", True, 0, "a;b")
    assert db.sql("SELECT * FROM texts").fetchall() == [expected]
    assert db.changes("texts").fetchall()[0][-8:] == expected
    assert db.sql("SELECT * FROM grouped").fetchall() == [("${env:HOME}o'", 1)]
    assert db.sql("SELECT `${env:HOME}` FROM s").fetchall() == [("kept",)]
    with pytest.raises(FunctionNotAllowed):
        db.sql("CREATE MATERIALIZED VIEW e AS SELECT reflect('java.lang.System', 'getenv', 'HOME') AS x FROM s")
    assert spark.conf.get("spark.sql.variable.substitute") == "true"
