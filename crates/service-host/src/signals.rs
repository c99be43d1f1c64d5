//! What ends a process of ours: SIGTERM and Ctrl-C.

use std::future::Future;
use std::io;

use futures::future::{Either, select};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both, listened to from here on.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Listens, inside a runtime: from now on neither ends the process by itself.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The number of the next one.
    pub fn received(&mut self) -> impl Future<Output = i32> {
        let Self { terminate, interrupt } = self;
        async move {
            match select(Box::pin(terminate.recv()), Box::pin(interrupt.recv())).await {
                Either::Left(_) => SignalKind::terminate().as_raw_value(),
                Either::Right(_) => SignalKind::interrupt().as_raw_value(),
            }
        }
    }
}
