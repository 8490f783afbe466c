"""The keywords and operators of Spark's expressions, as in its grammar (SqlBaseParser.g4 of Spark 4.2)."""

from __future__ import annotations

from sqlglot import TokenType, exp


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


AGGREGATES: dict[str, type[exp.Expr]] = {
    "COUNT": exp.Count,
    "SUM": exp.Sum,
    "AVG": exp.Avg,
    "MIN": exp.Min,
    "MAX": exp.Max,
}
LITERALS = (TokenType.STRING, TokenType.NUMBER)
QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES, TokenType.TABLE)
UNITS = frozenset(
    f"{unit}{plural}"
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
    for plural in ("", "S")
)
DATETIME_UNITS = words("YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND")
UNIT_FUNCTIONS = words("TIMESTAMPADD DATEADD DATE_ADD TIMESTAMPDIFF DATEDIFF DATE_DIFF TIMEDIFF")
# Function: keywords that may separate its arguments instead of commas.
WORDED = {
    "EXTRACT": ("FROM",),
    "TRIM": ("BOTH", "LEADING", "TRAILING", "FROM"),
    "SUBSTRING": ("FROM", "FOR"),
    "SUBSTR": ("FROM", "FOR"),
    "OVERLAY": ("PLACING", "FROM", "FOR"),
    "POSITION": ("IN",),
}
BARE_FUNCTIONS = words("CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME CURRENT_USER SESSION_USER")
# From the highest precedence to the lowest; all are left-associative.
OPERATORS: tuple[dict[str, type[exp.Binary] | None], ...] = (
    {"*": exp.Mul, "/": None, "%": None, "DIV": None},
    {"+": exp.Add, "-": exp.Sub, "||": None},
    {"<<": None, ">>": None, ">>>": None},
    {"&": exp.BitwiseAnd},
    {"^": None},
    {"|": exp.BitwiseOr},
    {
        "=": exp.EQ,
        "==": exp.EQ,
        "<>": exp.NEQ,
        "!=": exp.NEQ,
        "<": exp.LT,
        "<=": exp.LTE,
        ">": exp.GT,
        ">=": exp.GTE,
        "<=>": None,
    },
)
# Keywords that cannot begin an expression, although Spark would accept them as column names.
NO_OPERANDS = words(
    """
    AND AS BETWEEN BY CROSS DISTRIBUTE ELSE END EXCEPT FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT IS JOIN
    LATERAL LIKE LIMIT MINUS NATURAL NOT ON OR ORDER QUALIFY RLIKE REGEXP SELECT SORT THEN UNION USING WHEN WHERE
    WITH
    """
)

# Operators that can also be called as functions.
OPERATOR_FUNCTIONS = words("LIKE ILIKE RLIKE REGEXP")
