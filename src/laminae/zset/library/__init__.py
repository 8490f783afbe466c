"""The public classes of `laminae.zset`: aggregates of one group (`linear`, `keeping`) and of many (`grouped*`), the
buffer of changes, and corrections of late data.

They hold state in memory; their arithmetic is that of `laminae.zset`, which the kernels of views use as well.
"""
