"""Materialized views: what a query reads (operator trees follow)."""
