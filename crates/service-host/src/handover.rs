//! The order in which a program ends: it says that it leaves, hands its partitions over while HTTP goes
//! on (requests that meet nobody here are brought to whoever came next), then HTTP ends.

use std::fmt::Display;
use std::io;

use futures::future::{Either, select};
use service_kit::{Clock as _, Shutdown, SystemClock, within};
use tokio::task::{JoinError, JoinHandle};

use crate::process::RunError;

/// Longest a service gets to hand over, ms.
const SERVICE_MS: u64 = 6_000;

/// Longest HTTP gets for the requests under way, ms.
const HTTP_MS: u64 = 5_000;

/// A service and its HTTP server, running.
pub struct Running<E> {
    /// The service.
    pub service: JoinHandle<Result<(), E>>,
    /// HTTP.
    pub http: JoinHandle<io::Result<()>>,
    /// What `http` looks at to send clients elsewhere, and to be ready no more.
    pub leaving: Shutdown,
    /// Ends the service.
    pub stop_service: Shutdown,
    /// Ends HTTP.
    pub stop_http: Shutdown,
}

impl<E: Display> Running<E> {
    /// Runs until `shutdown` is requested, then ends both in order, within 11 s.
    ///
    /// # Errors
    /// One of them ended by itself, or did not end in time.
    pub async fn until(self, shutdown: &Shutdown) -> Result<(), RunError> {
        let Self { mut service, mut http, leaving, stop_service, stop_http } = self;
        let either = select(&mut service, &mut http);
        let by_itself = match select(shutdown.requested(), either).await {
            Either::Left(_) => None,
            Either::Right((Either::Left((ended, _)), _)) => Some(how("the service", ended)),
            Either::Right((Either::Right((ended, _)), _)) => Some(how("HTTP", ended)),
        };
        leaving.request();
        stop_service.request();
        if let Some(why) = by_itself {
            stop_http.request();
            return Err(why);
        }
        let mut late = Vec::new();
        let began = SystemClock.boot_ms();
        let service = within(&SystemClock, SERVICE_MS, service).await;
        tracing::info!(ms = SystemClock.boot_ms() - began, "handed over");
        stop_http.request();
        match service {
            None => late.push("the hand-over of partitions"),
            Some(Ok(Ok(()))) => {}
            Some(ended) => return Err(how("the service", ended)),
        }
        match within(&SystemClock, HTTP_MS, http).await {
            None => late.push("requests under way"),
            Some(Ok(Ok(()))) => {}
            Some(ended) => return Err(how("HTTP", ended)),
        }
        if late.is_empty() { Ok(()) } else { Err(RunError::Late(late)) }
    }
}

fn how<E: Display>(part: &'static str, ended: Result<Result<(), E>, JoinError>) -> RunError {
    let why = match ended {
        Ok(Ok(())) => "nobody asked it to".to_owned(),
        Ok(Err(why)) => why.to_string(),
        Err(why) if why.is_panic() => "it panicked: a defect, please report it".to_owned(),
        Err(_) => "it was dropped".to_owned(),
    };
    RunError::Ended { part, why }
}
