"""How the schema of a source changes: the plan of an evolution, and what data may ask for.

Pure functions over values of the catalog; nothing is committed here.
"""
