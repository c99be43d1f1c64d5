//! Which problem codes an operation can answer with: what its parts can, added up. The sets are upper
//! bounds; the edge's tests hold every answer they get against them.

use rest_contract::Code;

/// Whatever is asked.
pub(crate) const ALWAYS: &[Code] = &[Code::Internal, Code::Overloaded];

/// Parameters of path, query and headers are read.
pub(crate) const PARAMETERS: &[Code] = &[Code::InvalidParameter];

/// A JSON body is read.
pub(crate) const BODY: &[Code] = &[
    Code::MalformedJson,
    Code::DuplicateField,
    Code::UnknownField,
    Code::InvalidField,
    Code::PayloadTooLarge,
    Code::UnsupportedMediaType,
    Code::RequestTimeout,
];

/// It is about one task.
pub(crate) const ONE_TASK: &[Code] = &[Code::TaskUnknown, Code::ReplayWindowOver];

/// The owner of a partition is asked.
pub(crate) const OWNER: &[Code] = &[Code::OwnerUnavailable, Code::Draining, Code::StoreUnavailable];

/// The owner writes a record.
pub(crate) const RECORD: &[Code] = &[Code::InFlightFull, Code::LogUnavailable, Code::OutcomeUnknown];
