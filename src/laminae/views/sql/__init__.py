"""The SQL text of view queries: its dialect for sqlglot, printing it verbatim, the names in it, what it may contain.

Nothing here knows operators; `laminae.views.planner` turns the parsed text into them.
"""
