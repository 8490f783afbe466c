"""Changes as Debezium writes and reads them: one envelope, or a whole changelog as messages."""
