"""Code that runs inside Spark's Python tasks: the stage of each stateful operator, and its reports to the driver.

It must not read or write the catalog: only the driver does.
"""
