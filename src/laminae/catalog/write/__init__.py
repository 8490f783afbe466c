"""How each update of a commit is written. Nothing outside the catalog imports these modules."""
