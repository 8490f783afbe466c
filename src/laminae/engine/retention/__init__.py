"""What may be deleted or merged: files of sources, changelogs of views. Pure: all facts are passed in.

Nothing is deleted here; `laminae.spark.driver` does that.
"""
