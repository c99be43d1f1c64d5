//! A TCP proxy that misbehaves on demand, for tests with real engines and real processes: forwards, drops
//! one direction, delays, slows down, cuts, resets. It runs on a thread of its own, so that it outlives
//! the runtime of any single test and no blocked test holds it up.
//!
//! How clients stay on it: a Kafka broker needs a listener that advertises the proxy's port, since clients
//! reconnect to what the broker advertises (`scripts/kafka.sh start --proxy-port`). The driver of a single
//! Cassandra node goes on with the address that it was given, and a client of Redis knows no other.

mod fault;
mod pump;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub use fault::Fault;
use pump::{Direction, pump};

/// A running proxy; dropping it closes everything.
pub struct FaultProxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    fault: watch::Sender<Fault>,
    upstream: watch::Sender<Option<SocketAddr>>,
    stop: watch::Sender<bool>,
    /// Bytes left before a cut.
    budget: AtomicI64,
    swallowed: AtomicU64,
    held_up: AtomicU64,
    torn: AtomicU64,
}

impl FaultProxy {
    /// Listens on a free loopback port. Connections wait until there is an upstream.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            fault: watch::Sender::new(Fault::None),
            upstream: watch::Sender::new(None),
            stop: watch::Sender::new(false),
            budget: AtomicI64::new(0),
            swallowed: AtomicU64::new(0),
            held_up: AtomicU64::new(0),
            torn: AtomicU64::new(0),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let served = shared.clone();
        thread::Builder::new().name("fault-proxy".into()).spawn(move || {
            runtime.block_on(async {
                let mut stop = served.stop.subscribe();
                tokio::select! {
                    () = accept(listener, served.clone()) => {}
                    _ = stop.wait_for(|stop| *stop) => {}
                }
            });
        })?;
        Ok(Self { port, shared })
    }

    /// Port on 127.0.0.1 that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where connections are forwarded to.
    pub fn forward_to(&self, upstream: SocketAddr) {
        self.shared.upstream.send_replace(Some(upstream));
    }

    /// Changes what happens to all connections, open and new. Connections that lost bytes are
    /// closed when the fault ends: their streams can't be continued.
    pub fn set(&self, fault: Fault) {
        if let Fault::CutRequestsAfter(bytes) | Fault::CutResponsesAfter(bytes) = fault {
            self.shared.budget.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
        self.shared.fault.send_replace(fault);
    }

    /// Bytes swallowed or cut off so far: a fault that swallowed nothing was not injected.
    pub fn swallowed(&self) -> u64 {
        self.shared.swallowed.load(Ordering::SeqCst)
    }

    /// Bytes that were passed on later than they came, so far.
    pub fn held_up(&self) -> u64 {
        self.shared.held_up.load(Ordering::SeqCst)
    }

    /// Connections that were closed or reset on purpose, so far.
    pub fn torn(&self) -> u64 {
        self.shared.torn.load(Ordering::SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.stop.send_replace(true);
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    for number in 0.. {
        let Ok((client, _)) = listener.accept().await else { continue };
        let fault = *shared.fault.borrow();
        if fault.closes() {
            shared.tear(fault, &client);
            continue;
        }
        tokio::spawn(serve(client, number, shared.clone()));
    }
}

async fn serve(mut client: TcpStream, number: u64, shared: Arc<Shared>) {
    let mut upstream = shared.upstream.subscribe();
    let Ok(address) = upstream.wait_for(Option::is_some).await.map(|address| *address) else { return };
    let Some(address) = address else { return };
    let Ok(mut server) = TcpStream::connect(address).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    {
        let (client_read, client_write) = client.split();
        let (server_read, server_write) = server.split();
        // Either direction ending ends both: half-closed streams are of no use to a client.
        tokio::select! {
            () = pump((client_read, server_write), (Direction::Request, number), &shared) => {}
            () = pump((server_read, client_write), (Direction::Response, number), &shared) => {}
        }
    }
    let fault = *shared.fault.borrow();
    if fault.closes() {
        shared.tear(fault, &client);
        shared.tear(fault, &server);
    }
}

impl Shared {
    // The socket closes when it is dropped, by the caller: with an RST where nothing lingers.
    fn tear(&self, fault: Fault, socket: &TcpStream) {
        self.torn.fetch_add(1, Ordering::SeqCst);
        if fault == Fault::Reset {
            let _ = socket.set_zero_linger();
        }
    }
}
