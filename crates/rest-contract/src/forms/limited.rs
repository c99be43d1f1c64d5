//! Texts of requests with the limits they are held against. A schema can only count characters where the
//! limit is in bytes of UTF-8: what it refuses is refused by the edge, not the other way round.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::form;
use crate::limits::{MAX_NAME_BYTES, MAX_TEXT_BYTES};

form!(
    /// A name: task type, queue, creator, worker, key, step.
    Name,
    |_| json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES })
);
form!(
    /// The value of a label.
    Label,
    |_| json_schema!({ "type": "string", "maxLength": MAX_NAME_BYTES })
);
form!(
    /// A free text: reason, note, reference.
    Note,
    |_| json_schema!({ "type": "string", "maxLength": MAX_TEXT_BYTES })
);
form!(
    /// A trace id (W3C Trace Context): not all 0.
    Trace,
    |_| json_schema!({
        "type": "string", "pattern": "^[0-9a-f]{32}$", "examples": ["4bf92f3577b34da6a3ce929d0e0e4736"],
    })
);
