"""One epoch of a source: plan, read, evolve, write, commit once. It delivers nothing: sinks follow the commit."""
