//! `dualtrack dev` and the command line as users start them, with real processes.

mod kit;
mod processes;
mod torn_tail;
