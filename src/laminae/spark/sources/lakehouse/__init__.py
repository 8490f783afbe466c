"""The common parts of sources over lakehouse tables. The libraries are imported when a table is first opened."""
