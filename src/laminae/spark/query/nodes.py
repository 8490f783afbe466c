"""The allow-list of Catalyst nodes in a SELECT: logical plan nodes and expressions, parsed and analysed.

Names are class names below `PACKAGE`. A node that is in no table is refused: a new Spark may add nodes that reach the
JVM, files or the network. A test compares the tables with the functions of the running Spark.
"""

from __future__ import annotations

from laminae.views.sql.grammar import words

PACKAGE = "org.apache.spark.sql.catalyst."

PLANS = words(
    """
    Aggregate AsOfJoin CTERelationDef CTERelationRef Deduplicate Distinct Except Expand Filter Generate GlobalLimit
    Intersect Join LateralJoin LocalLimit LocalRelation Offset OneRowRelation PipeOperator Pivot Project Range
    RebalancePartitions Repartition RepartitionByExpression Sample Sort SubqueryAlias Tail Union Unpivot
    UnresolvedHaving UnresolvedHint UnresolvedInlineTable UnresolvedPivotOperator UnresolvedQualify
    UnresolvedRelation UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction
    UnresolvedUnpivot UnresolvedWith Window WithWindowDefinition UnresolvedOrdinal UnresolvedEventTimeWatermark
    UnresolvedNamedLambdaVariable
    """
)
"""Nodes of a parsed plan that only compute. Everything else that Spark can parse (commands, scripts, streams, time
travel) is refused by its name."""

RESOLVED_PLANS = words(
    """
    Aggregate AsOfJoin CTERelationDef CTERelationRef Deduplicate Distinct Except Expand Filter Generate GlobalLimit
    Intersect Join LateralJoin LocalLimit LocalRelation Offset OneRowRelation PipeOperator Project Range
    RebalancePartitions Repartition RepartitionByExpression ResolvedHint Sample Sort SubqueryAlias Tail Union UnionLoop
    UnionLoopRef Unpivot View Window WithCTE
    """
)
"""The same for an analysed plan. The plan below a View node belongs to a relation of the home, not to the query."""

_FUNCTIONS = words(
    """
    Abs Acos Acosh Add AddMonths AesDecrypt AesEncrypt Alias And ApproxTopKEstimate ArrayAggregate ArrayAppend
    ArrayCompact ArrayContains ArrayDistinct ArrayExcept ArrayExists ArrayFilter ArrayForAll ArrayInsert
    ArrayIntersect ArrayJoin ArrayMax ArrayMin ArrayPosition ArrayPrepend ArrayRemove ArrayRepeat ArraySize
    ArraySort ArrayTransform ArrayUnion ArraysOverlap ArraysZip Ascii Asin Asinh AssertTrue Atan Atan2 Atanh
    AttributeReference BRound Base64 Between Bin BinaryPad BinaryPredicate BitLength BitmapAndAgg
    BitmapBitPosition BitmapBucketNumber BitmapConstructAgg BitmapCount BitmapOrAgg BitwiseAnd BitwiseCount
    BitwiseGet BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast Cbrt Ceil Chr Coalesce Collate Collation Collations
    CommonExpressionDef CommonExpressionRef Concat ConcatWs Contains Conv ConvertTimezone Cos Cosh Cot Crc32
    CreateArray CreateMap CreateNamedStruct Csc CsvToStructs CumeDist CurrentCatalog CurrentDatabase CurrentDate
    CurrentPath CurrentTime CurrentTimeZone CurrentTimestamp CurrentUser DateAdd DateAddYMInterval DateDiff
    DateFormatClass DateFromUnixDate DateSub DatetimeSub DayName DayOfMonth DayOfWeek DayOfYear Decode DenseRank
    Divide DivideYMInterval ElementAt Elt Encode EndsWith EqualNull EqualNullSafe EqualTo EulerNumber Exp
    Explode Expm1 Extract ExtractANSIIntervalDays ExtractANSIIntervalMinutes ExtractANSIIntervalMonths
    ExtractANSIIntervalSeconds Factorial FindInSet Flatten Floor FormatNumber FormatString FromAvro
    FromUTCTimestamp FromUnixTime Get GetJsonObject GetStructField GreaterThan GreaterThanOrEqual Greatest
    Grouping GroupingID Hex HllSketchEstimate HllUnion Hour Hypot ILike If In InitCap Inline IntegralDivide
    IsNaN IsNotNull IsNull IsValidUTF8 JsonObjectKeys JsonToStructs JsonTuple KllSketchGetNBigint
    KllSketchGetNDouble KllSketchGetNFloat KllSketchGetQuantileBigint KllSketchGetQuantileDouble
    KllSketchGetQuantileFloat KllSketchGetRankBigint KllSketchGetRankDouble KllSketchGetRankFloat
    KllSketchMergeBigint KllSketchMergeDouble KllSketchMergeFloat KllSketchToStringBigint
    KllSketchToStringDouble KllSketchToStringFloat KnownNullable Lag LambdaFunction LastDay Lead Least Left
    Length LengthOfJsonArray LessThan LessThanOrEqual Levenshtein Like Literal LocalTimestamp Log Log10 Log1p
    Log2 Logarithm Lower Luhncheck MakeDTInterval MakeDate MakeInterval MakeTime MakeTimestamp
    MakeTimestampFromDateTime MakeTimestampNTZ MakeValidUTF8 MakeYMInterval MapConcat MapContainsKey MapEntries
    MapFilter MapFromArrays MapFromEntries MapKeys MapValues MapZipWith Mask Md5 MicrosToTimestamp
    MillisToTimestamp Minute MonotonicallyIncreasingID Month MonthName MonthsBetween Multiply MultiplyYMInterval
    Murmur3Hash NTile NaNvl NamedLambdaVariable NextDay Not Now NthValue NullIf NullIfZero Nvl Nvl2 OctetLength
    Or Overlay ParseToDate ParseToTimestamp ParseUrl PercentRank Pi Pmod PosExplode Pow
    PreciseTimestampConversion Quarter Quote RLike RaiseError Rand RandStr Randn Rank RegExpCount RegExpExtract
    RegExpExtractAll RegExpInStr RegExpReplace RegExpSubStr Remainder ResolvedCollation Reverse Right Rint Round
    RoundCeil RoundFloor RowNumber SQLKeywords SchemaOfAvro SchemaOfCsv SchemaOfJson SchemaOfXml Sec Second
    SecondWithFraction SecondsToTimestamp Sentences Sequence SessionWindow Sha1 Sha2 ShiftLeft ShiftRight
    ShiftRightUnsigned Shuffle Signum Sin Sinh Size Slice SortArray SortOrder SoundEx SparkPartitionID
    SparkVersion SpecifiedWindowFrame SplitPart Sqrt Stack StartsWith StringDecode StringInstr StringLPad
    StringLocate StringRPad StringRepeat StringReplace StringSpace StringSplit StringToMap StringTranslate
    StringTrim StringTrimBoth StringTrimLeft StringTrimRight StructsToCsv StructsToJson StructsToXml Substring
    SubstringIndex Subtract Tan Tanh ThetaDifference ThetaIntersection ThetaSketchEstimate ThetaUnion TimeBucket
    TimeDiff TimeFromMicros TimeFromMillis TimeFromSeconds TimeToMicros TimeToMillis TimeToSeconds TimeTrunc
    TimeWindow TimestampAddInterval ToAvro ToBinary ToCharacter ToDegrees ToNumber ToRadians ToTime
    ToUTCTimestamp ToUnixTimestamp TransformKeys TransformValues TruncDate TruncTimestamp TryAdd TryAesDecrypt
    TryDivide TryElementAt TryEval TryMakeInterval TryMakeTimestamp TryMakeTimestampFromDateTime TryMod
    TryMultiply TryParseUrl TrySubtract TryToBinary TryToNumber TryUrlDecode TryValidateUTF8
    TupleDifferenceDouble TupleDifferenceInteger TupleDifferenceThetaDouble TupleDifferenceThetaInteger
    TupleIntersectionDouble TupleIntersectionInteger TupleIntersectionThetaDouble TupleIntersectionThetaInteger
    TupleSketchEstimateDouble TupleSketchEstimateInteger TupleSketchSummaryDouble TupleSketchSummaryInteger
    TupleSketchThetaDouble TupleSketchThetaInteger TupleUnionDouble TupleUnionInteger TupleUnionThetaDouble
    TupleUnionThetaInteger TypeOf TypedNullLiteral UnBase64 UnaryMinus UnaryPositive Unhex Uniform UnixDate
    UnixMicros UnixMillis UnixSeconds UnixTimestamp Upper UrlDecode UrlEncode Uuid ValidateUTF8 VectorAvg
    VectorCosineSimilarity VectorInnerProduct VectorL2Distance VectorNorm VectorNormalize VectorSum WeekDay
    WeekOfYear WidthBucket WindowExpression WindowSpecDefinition WindowTime With XmlToStructs XxHash64 Year
    ZeroIfNull ZipWith aggregate.AggregateExpression aggregate.AnyValue aggregate.ApproxTopK
    aggregate.ApproxTopKAccumulate aggregate.ApproxTopKCombine aggregate.ApproximatePercentile aggregate.Average
    aggregate.BitAndAgg aggregate.BitOrAgg aggregate.BitXorAgg aggregate.BoolAnd aggregate.BoolOr
    aggregate.CollectList aggregate.CollectSet aggregate.Corr aggregate.Count aggregate.CountIf
    aggregate.CountMinSketchAgg aggregate.CovPopulation aggregate.CovSample aggregate.First
    aggregate.HistogramNumeric aggregate.HllSketchAgg aggregate.HllUnionAgg aggregate.HyperLogLogPlusPlus
    aggregate.KllMergeAggBigint aggregate.KllMergeAggDouble aggregate.KllMergeAggFloat
    aggregate.KllSketchAggBigint aggregate.KllSketchAggDouble aggregate.KllSketchAggFloat aggregate.Kurtosis
    aggregate.Last aggregate.ListAgg aggregate.Max aggregate.MaxBy aggregate.MaxMinByK aggregate.Measure
    aggregate.Median aggregate.Min aggregate.MinBy aggregate.Mode aggregate.Percentile aggregate.PercentileCont
    aggregate.PercentileDisc aggregate.RegrAvgX aggregate.RegrAvgY aggregate.RegrCount aggregate.RegrIntercept
    aggregate.RegrR2 aggregate.RegrSXX aggregate.RegrSXY aggregate.RegrSYY aggregate.RegrSlope
    aggregate.Skewness aggregate.StddevPop aggregate.StddevSamp aggregate.Sum aggregate.ThetaIntersectionAgg
    aggregate.ThetaSketchAgg aggregate.ThetaUnionAgg aggregate.TupleIntersectionAggDouble
    aggregate.TupleIntersectionAggInteger aggregate.TupleSketchAggDouble aggregate.TupleSketchAggInteger
    aggregate.TupleUnionAggDouble aggregate.TupleUnionAggInteger aggregate.VariancePop aggregate.VarianceSamp
    st.ST_AsBinary st.ST_GeogFromWKB st.ST_GeomFromWKB st.ST_SetSrid st.ST_Srid variant.IsValidVariant
    variant.IsVariantNull variant.ParseJson variant.SchemaOfVariant variant.SchemaOfVariantAgg
    variant.ToVariantObject variant.VariantExplode variant.VariantGet xml.XPathBoolean xml.XPathDouble
    xml.XPathFloat xml.XPathInt xml.XPathList xml.XPathLong xml.XPathShort xml.XPathString
    """
)
"""The expressions of Spark's built-in functions, except for those in `function_names.OUTSIDE`."""

_SYNTAX = words(
    """
    BoundReference CheckOverflow Cube CurrentRow$ DateAddInterval DivideDTInterval DivideInterval Exists
    ExtractANSIIntervalHours ExtractANSIIntervalYears ExtractIntervalDays ExtractIntervalHours
    ExtractIntervalMinutes ExtractIntervalMonths ExtractIntervalSeconds ExtractIntervalYears GeneratorOuter
    GetArrayItem GetArrayStructFields GetMapValue GetTimestamp GroupingSets HoursOfTime InSubquery
    IsNotUnknown$$anon$2 IsUnknown$$anon$1 LateralColumnAliasReference LateralSubquery LikeAll LikeAny ListQuery
    MapSort MinutesOfTime MultiplyDTInterval MultiplyInterval NamePlaceholder$ NamedArgumentExpression NotLikeAll
    NotLikeAny
    OuterReference PipeExpression Rollup ScalarSubquery SecondsOfTime SecondsOfTimeWithFraction
    SemiStructuredExtract StringSplitSQL SubtractDates SubtractTimes SubtractTimestamps TimeAddInterval
    TimestampAdd TimestampAddYMInterval TimestampDiff UnboundedFollowing$ UnboundedPreceding$
    UnresolvedCollation UnresolvedNamedLambdaVariable UnresolvedWindowExpression UnspecifiedFrame$ UpCast YearOfWeek
    aggregate.PivotFirst aggregate.RegrReplacement
    """
)
"""The expressions of operators, clauses, literals and subqueries."""

_UNRESOLVED = words(
    """
    MultiAlias NamedParameter PosParameter ResolvedStar TempResolvedColumn UnresolvedAlias UnresolvedAttribute
    UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator UnresolvedOrdinal UnresolvedPipeAggregateOrdinal
    UnresolvedRegex UnresolvedStar UnresolvedStarExceptOrReplace UnresolvedStarWithColumns
    UnresolvedStarWithColumnsRenames
    """
)
"""Unresolved expressions, which the analyzer replaces. Functions among them are checked by name."""

EXPRESSIONS = frozenset(
    (
        *(f"{PACKAGE}expressions.{name}" for name in _FUNCTIONS | _SYNTAX),
        *(f"{PACKAGE}analysis.{name}" for name in _UNRESOLVED),
    )
)
"""Every expression class that is allowed in any SELECT."""

OWN_FUNCTIONS = frozenset(
    (
        *(f"{PACKAGE}expressions.{name}" for name in words("PythonUDAF PythonUDF ScalaUDF UserDefinedGenerator")),
        *(f"{PACKAGE}expressions.{name}" for name in words("ApplyFunctionExpression aggregate.V2Aggregator")),
        *(f"{PACKAGE}analysis.{name}" for name in words("SQLFunctionExpression SQLScalarFunction")),
        *(f"org.apache.spark.sql.execution.aggregate.{name}" for name in words("ScalaAggregator ScalaUDAF")),
        *(f"org.apache.spark.sql.hive.{name}" for name in words("HiveGenericUDF HiveSimpleUDF HiveUDAFFunction")),
    )
)
"""The expressions of user-defined functions: allowed only in a query that calls one which the home allows."""
