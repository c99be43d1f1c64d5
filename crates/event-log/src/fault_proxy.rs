//! A TCP proxy that misbehaves on demand, for tests of network adapters: forwards, drops one
//! direction, delays, cuts. It runs on a thread of its own, so that it outlives the runtime of
//! any single test and no blocked test holds it up.
//!
//! A Kafka broker needs a listener that advertises the proxy's port: clients reconnect to what
//! the broker advertises (`scripts/kafka.sh start --proxy-port`).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, tcp};
use tokio::sync::watch;

/// What the proxy does to all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Forwards.
    None,
    /// Requests arrive, responses are swallowed.
    DropResponses,
    /// Requests are swallowed; what is on its way back still arrives.
    DropRequests,
    /// Nothing arrives anywhere; connections stay open.
    Blackhole,
    /// Each chunk is delayed by this much, per direction.
    Latency(Duration),
    /// After this many further bytes of requests, over all connections, the connection that
    /// carries the next one is closed in the middle of it; then the proxy forwards again.
    CutRequestsAfter(u64),
    /// As [`Fault::CutRequestsAfter`], for responses.
    CutResponsesAfter(u64),
    /// New connections are closed at once, and so are the open ones.
    Refuse,
}

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
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Response,
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
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.stop.send_replace(true);
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        if *shared.fault.borrow() == Fault::Refuse {
            continue;
        }
        tokio::spawn(serve(client, shared.clone()));
    }
}

async fn serve(client: TcpStream, shared: Arc<Shared>) {
    let mut upstream = shared.upstream.subscribe();
    let Ok(address) = upstream.wait_for(Option::is_some).await.map(|address| *address) else { return };
    let Some(address) = address else { return };
    let Ok(server) = TcpStream::connect(address).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    // Either direction ending ends both: half-closed streams are of no use to a client.
    tokio::select! {
        () = pump(client_read, server_write, Direction::Request, &shared) => {}
        () = pump(server_read, client_write, Direction::Response, &shared) => {}
    }
}

#[expect(clippy::disallowed_methods, reason = "injected latency is real time: the other end is a real process")]
async fn pump(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf, direction: Direction, shared: &Shared) {
    let mut fault = shared.fault.subscribe();
    let mut buffer = vec![0; 64 << 10];
    let mut lost = false;
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = fault.changed() => {
                let now = *fault.borrow_and_update();
                if now == Fault::Refuse || lost && now == Fault::None {
                    return;
                }
                continue;
            }
        };
        let Ok(count @ 1..) = read else { return };
        let now = *fault.borrow();
        let (pass, end) = shared.judge(now, direction, count);
        if pass < count {
            lost = true;
            shared.swallowed.fetch_add((count - pass) as u64, Ordering::SeqCst);
        }
        if let Fault::Latency(delay) = now {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&buffer[..pass]).await.is_err() || end {
            return;
        }
    }
}

impl Shared {
    /// How many of these bytes pass, and whether the connection ends after them.
    fn judge(&self, fault: Fault, direction: Direction, count: usize) -> (usize, bool) {
        let cut = || {
            let before = self.budget.fetch_sub(count as i64, Ordering::SeqCst);
            let pass = usize::try_from(before).unwrap_or(0).min(count);
            if pass < count {
                self.fault.send_replace(Fault::None);
            }
            (pass, pass < count)
        };
        match (fault, direction) {
            (Fault::None | Fault::Latency(_), _) => (count, false),
            (Fault::DropResponses | Fault::CutResponsesAfter(_), Direction::Request)
            | (Fault::DropRequests | Fault::CutRequestsAfter(_), Direction::Response) => (count, false),
            (Fault::DropResponses, Direction::Response)
            | (Fault::DropRequests, Direction::Request)
            | (Fault::Blackhole, _) => (0, false),
            (Fault::CutRequestsAfter(_), Direction::Request) | (Fault::CutResponsesAfter(_), Direction::Response) => {
                cut()
            }
            (Fault::Refuse, _) => (0, true),
        }
    }
}
