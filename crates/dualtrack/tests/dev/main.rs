//! `dualtrack dev` and the command line as users start them, with real processes.

mod command_line;
mod import_answers;
mod imports;
mod kit;
mod nouns;
mod processes;
mod torn_tail;
