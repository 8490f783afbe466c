"""Builders and strategies that more than one test file needs."""
