//! The edge over real sockets. One target: each would compile the whole edge once more.

mod checked;
mod upstream;
mod worker;
