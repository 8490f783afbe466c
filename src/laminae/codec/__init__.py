"""How records are written, without Spark: which schema version a record has, and what its names mean there."""
