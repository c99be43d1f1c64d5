"""The committed document is a valid one, by a stock validator."""

import json
import unittest
from pathlib import Path

from openapi_spec_validator import OpenAPIV31SpecValidator, validate

PATH = Path(__file__).resolve().parents[2] / "schemas/openapi/dualtrack.json"


class Document(unittest.TestCase):
    def setUp(self):
        self.document = json.loads(PATH.read_text(encoding="utf-8"))

    def test_it_is_valid(self):
        validate(self.document, cls=OpenAPIV31SpecValidator)

    def test_what_is_wrong_would_be_seen(self):
        self.document["paths"]["/healthz"]["get"]["responses"]["200"].pop("description")
        with self.assertRaises(Exception):
            validate(self.document, cls=OpenAPIV31SpecValidator)
