//! The process between a worker and one program that it runs: it ends the program and everything that
//! came of it at the end of the lease, and when the worker is gone, also if the worker stands still.
//!
//! ```text
//! worker ──stdin: Start, Until, Terminate, Kill, Reply──▶ supervisor ──▶ enter ──▶ the program
//!        ◀──stdout: Line …, Ended──────────────────────── (subreaper)     (PDEATHSIG, exec)
//! ```
//!
//! One supervisor a program, so that every orphan it adopts is one of this program. It ends with its
//! program; its last word is [`FromSupervisor::Ended`], said when nothing of the tree is left.

mod capture;
mod enter;
mod lines;
mod message;
mod pipe;
mod run;
mod start;

pub use capture::Captured;
pub use enter::{EnterArgs, enter};
pub use message::{Cut, Ended, FromSupervisor, How, LastLine, Start, ToSupervisor, codec, from_frame, to_frame};
pub use run::supervise;
