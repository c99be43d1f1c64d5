//! The table of what the edge serves: each endpoint's method, path and handler stand beside the
//! operation that the OpenAPI document shows of it. Router and document are made from this one table,
//! so that neither knows a path the other does not. `/internal/v1` is not in it: instances of one
//! release talk to each other there, and nobody else.

mod codes;
mod document;
mod operation;
mod schemas;

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, on};

pub(crate) use codes::*;
pub(crate) use document::text;
pub(crate) use operation::{Operation, Parameter, schema};

/// What is served and what is said of it.
pub(crate) struct Routes<S> {
    router: Router<S>,
    described: Vec<Described>,
}

/// One row of the table.
pub(crate) struct Described {
    /// Group it is shown in.
    tag: &'static str,
    method: Method,
    path: &'static str,
    operation: Operation,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), described: Vec::new() }
    }

    /// Both tables.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.described.extend(other.described);
        self
    }

    /// `GET path`.
    pub(crate) fn get<H: Handler<T, S>, T: 'static>(
        self,
        tag: &'static str,
        path: &'static str,
        handler: H,
        operation: Operation,
    ) -> Self {
        self.on(MethodFilter::GET, handler, Described { tag, method: Method::GET, path, operation })
    }

    /// `POST path`.
    pub(crate) fn post<H: Handler<T, S>, T: 'static>(
        self,
        tag: &'static str,
        path: &'static str,
        handler: H,
        operation: Operation,
    ) -> Self {
        self.on(MethodFilter::POST, handler, Described { tag, method: Method::POST, path, operation })
    }

    fn on<H: Handler<T, S>, T: 'static>(mut self, filter: MethodFilter, handler: H, described: Described) -> Self {
        self.router = self.router.route(described.path, on(filter, handler));
        self.described.push(described);
        self
    }

    /// What answers requests.
    pub(crate) fn into_router(self) -> Router<S> {
        self.router
    }

    /// What is said of it.
    pub(crate) fn described(&self) -> &[Described] {
        &self.described
    }
}
