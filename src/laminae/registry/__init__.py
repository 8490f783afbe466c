"""A client for schema registries with the Confluent REST API.

It must not know sources or columns: it returns schemas as registered, and errors with a remedy.
"""

from laminae.net.backoff import Retry
from laminae.registry.client import RegistryClient
from laminae.registry.model import Reference, RegisteredSchema, SubjectVersion
from laminae.registry.settings import RegistrySettings
from laminae.registry.subjects import SubjectStrategy, subject_of

__all__ = [
    "Reference",
    "RegisteredSchema",
    "RegistryClient",
    "RegistrySettings",
    "Retry",
    "SubjectStrategy",
    "SubjectVersion",
    "subject_of",
]
