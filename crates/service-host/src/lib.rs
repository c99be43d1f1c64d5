//! What the service programs share around their service: settings in layers, sections that several
//! of them have, connections to the engines and the proof that these are as they must be, signals,
//! and exit codes. It names no task concept: what a program does, only the program knows.
//!
//! ```text
//! main ─▶ run::<Program>: arguments ─▶ settings ─▶ listener ─▶ Program::serve(Started) ─▶ exit code
//!                                                     engines, prover ◀┘
//! ```

mod beside;
mod engines;
mod handover;
#[cfg(feature = "failpoints")]
mod kill_at;
mod print;
mod process;
pub mod prover;
mod secret;
pub mod sections;
pub mod settings;
mod signals;

pub use beside::Probes;
pub use engines::{CLOSE, EngineError, connected};
pub use handover::Running;
#[cfg(feature = "failpoints")]
pub use kill_at::arm;
pub use print::{complain, print, say, tell_rules};
pub use process::{Program, RunError, Started, check, run};
pub use secret::Secret;
pub use settings::{Origin, ProgramSettings, Rule, Setting, SettingsError, Sources};
pub use signals::Signals;
