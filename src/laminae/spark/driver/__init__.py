"""What runs in the driver for a whole home: pipeline, lease, storage, savepoints, repair, garbage collection.

Nothing in it runs in a task.
"""
