"""What a Kafka source and a Kafka sink share: the connector on Spark's class path, and the settings of its client."""
