"""How an epoch is run, as values: the read strategies it tries, and its stages. No Spark here."""
