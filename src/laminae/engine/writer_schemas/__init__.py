"""Writer schemas, from a registry id or inline in a message: how they are judged and bound to a source.

It decides which schema a record is decoded with. It must not decode records.
"""
