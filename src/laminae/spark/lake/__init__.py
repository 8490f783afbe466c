"""Tables of a lakehouse as sources and sinks. Their libraries are loaded when a table is first looked at."""
