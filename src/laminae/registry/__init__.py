"""A client of schema registries that speak the Confluent REST API, and what their answers mean to laminae."""

from laminae.registry.client import RegistryClient
from laminae.registry.model import Reference, RegisteredSchema, SubjectVersion
from laminae.registry.retry import Retry
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
