//! Ready-made workers: `dualtrack worker exec` runs a program for each task, `dualtrack worker http`
//! posts it to a URL. Both are handlers of the SDK; [`serve`] is what they share.
//!
//! A program and all its descendants belong to a [`supervisor`] process of their own, so that they end
//! with the attempt, and with the worker, whatever happens to it.

pub mod exec;
pub mod http;
mod result;
pub mod serve;
pub mod supervisor;
mod tree;
