//! What the fold of a partition starts from: the newest valid checkpoint, or offset 0, and nowhere
//! else (design.md §4.10). Owner, engine and replayer start alike; each of them compares the hash
//! of its own state with those that others publish.

mod patience;
mod source;
mod start;

pub use patience::{Away, LoadError, patient, pause};
pub use source::{Checkpoints, FromTheStart, StoredCheckpoints};
pub use start::{Origin, Start, load_before, load_start};
