"""A format that is not shipped: lines of `key=value` pairs, as many log libraries write them."""

from laminae.engine.options.connectors import Format

ROW = Format("logfmt", "tests.support.logfmt.format:open_format", infers_types=True, are_lines=True)
