"""The fields of the registry of deployments, by section, in its order, and what is asked where the library cannot know.

Names and choices were read in schemas/deployments-schema.yaml of opendp/deployments-registry-data, November 2026.
"""

from __future__ import annotations

SECTIONS = {
    "basic": (
        "name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description",
        "publication_date", "data_product_sector",
    ),
    "dp_variant": ("variant_name", "data_domain", "unprotected_quantities"),
    "privacy_loss": (
        "privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details",
    ),
    "deployment_model": (
        "model_name", "model_name_details", "actors", "release_type", "release_type_details", "data_source_type",
        "data_source_type_details", "access_type", "access_type_details",
    ),
    "accounting": ("post_processing", "composition"),
    "implementation": ("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
    "administrative": ("sources", "notes", "registry_authors"),
}  # fmt: skip
"""The fields of `deployment`."""

LISTS = ("basic.data_curators", "administrative.registry_authors")
"""The fields that hold several texts."""

DATE = "basic.publication_date"
"""The field that holds a day."""

CHOICES = {
    "basic.data_product_sector": ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
    "deployment_model.release_type": ("One release", "Many releases"),
    "deployment_model.data_source_type": ("Static", "Dynamic"),
    "deployment_model.access_type": ("Interactive", "Non-interactive"),
}
"""What an answer can be, where the registry has a list."""

QUESTIONS = {
    "url_slug": "By which short name should the entry be found?",
    "basic.name": "What is the published product called?",
    "basic.data_curators": "Who publishes it?",
    "basic.intended_use": "What is it meant to be used for?",
    "basic.data_product_region": "Which region are the data about, or whose law holds?",
    "basic.description": "What does it show, in a few sentences?",
    "basic.publication_date": "On which day was it first published, as YYYY-MM-DD?",
    "basic.data_product_sector": "Which industry is it about?",
    "dp_variant.unprotected_quantities": "Is anything else published that comes from the data without noise?",
    "privacy_loss.privacy_unit": "Who is one user: a person, an account, a household, a device?",
    "deployment_model.model_name_details": "Who collects the data, and who runs the release?",
    "deployment_model.actors": "Who can see the data or the lists, and what are they trusted with?",
    "deployment_model.release_type": "Is it published once or again and again?",
    "deployment_model.release_type_details": "How often, and when does the budget start anew, if ever?",
    "deployment_model.data_source_type": "Do new data come in over time?",
    "deployment_model.data_source_type_details": "If so, how?",
    "deployment_model.access_type": "Can readers ask for releases of their own?",
    "deployment_model.access_type_details": "If so, how is the budget divided among them?",
    "accounting.post_processing": "Is anything done to the lists after the release, before people see them?",
    "accounting.composition": "What else was released about the same people, and what did it cost?",
    "implementation.preprocessing_and_hyperparameter_tuning":
        "How were the events prepared, and were k, epsilon or the condition chosen by looking at the data?",
    "implementation.mechanisms":
        "Which version of discreet was used, with which pad_to, and how are the data themselves kept safe?",
    "implementation.justification": "Why these terms: epsilon, the unit, the list of items?",
    "administrative.sources": "Where can people read about it, and find the lists?",
    "administrative.registry_authors": "Who filled in this entry?",
}  # fmt: skip
"""What the library cannot know, by field."""
