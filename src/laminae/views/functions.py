"""Which functions a view can hold: the aggregates it keeps, and those that would not give the same answer twice."""

from __future__ import annotations

from sqlglot import exp

from laminae.views.kernels.aggregates import Function

KEPT: dict[type[exp.Expr], Function] = {
    exp.Count: Function.COUNT,
    exp.Sum: Function.SUM,
    exp.Avg: Function.AVG,
    exp.Min: Function.MIN,
    exp.Max: Function.MAX,
}
KEPT_NAMES = "COUNT, SUM, AVG, MIN, MAX and COUNT(DISTINCT)"

# Spark's aggregates that sqlglot takes for ordinary functions.
OTHER_AGGREGATES = frozenset(
    (
        "any",
        "approx_top_k",
        "array_agg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "every",
        "first_value",
        "grouping",
        "grouping_id",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kurtosis",
        "last_value",
        "listagg",
        "max_by",
        "mean",
        "median",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "schema_of_json_agg",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum_distinct",
        "try_avg",
        "try_sum",
        "var_pop",
        "var_samp",
        "variance",
    )
)

NOT_DETERMINISTIC = frozenset(
    (
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_timezone",
        "current_user",
        "curdate",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "localtimestamp",
        "monotonically_increasing_id",
        "now",
        "rand",
        "randn",
        "random",
        "randstr",
        "session_user",
        "shuffle",
        "spark_partition_id",
        "sysdate",
        "uniform",
        "user",
        "uuid",
        "version",
    )
)
NOT_DETERMINISTIC_NODES: tuple[type[exp.Expr], ...] = (
    exp.Rand,
    exp.Randn,
    exp.Uuid,
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentUser,
)

# One row becomes many, or none: not one projection row by row.
GENERATORS = frozenset(
    (
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "stack",
    )
)
GENERATOR_NODES: tuple[type[exp.Expr], ...] = (exp.Explode, exp.Posexplode)


def function_name(node: exp.Expr) -> str | None:
    """The name of a call as Spark knows it, in lower case; None for what is no call."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).casefold()
    if isinstance(node, exp.Func):
        return node.sql(dialect="spark").partition("(")[0].casefold()
    return None
