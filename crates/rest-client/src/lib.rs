//! A typed client of the REST contract: one method per endpoint, problems as values.
