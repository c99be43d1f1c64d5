//! Every fault of the proxy, against an echo: what tests rest on must itself do what it says.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use event_log::fault_proxy::{Fault, FaultProxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

const MOMENT: Duration = Duration::from_millis(300);

/// Answers what it gets; tells what it got.
async fn echo() -> (SocketAddr, mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(count @ 1..) = socket.read(&mut buffer).await {
                    let _ = tell.send(buffer[..count].to_vec());
                    if socket.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, told)
}

struct Line {
    proxy: FaultProxy,
    socket: TcpStream,
    told: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Line {
    async fn new() -> Self {
        let (address, told) = echo().await;
        let proxy = FaultProxy::start().expect("a proxy");
        proxy.forward_to(address);
        let mut line = Self { socket: Self::connect(&proxy).await, proxy, told };
        line.says("hello").await;
        assert_eq!(line.hears(5).await.as_deref(), Some("hello"));
        assert_eq!(line.arrived().await.as_deref(), Some("hello"));
        line
    }

    async fn connect(proxy: &FaultProxy) -> TcpStream {
        TcpStream::connect(("127.0.0.1", proxy.port())).await.expect("it listens")
    }

    async fn says(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).await.expect("sent");
    }

    /// What came back of so many bytes; nothing after a moment.
    #[expect(clippy::disallowed_methods, reason = "that nothing comes shows in real time only")]
    async fn hears(&mut self, count: usize) -> Option<String> {
        let mut bytes = vec![0; count];
        let read = tokio::time::timeout(MOMENT * 10, self.socket.read_exact(&mut bytes)).await;
        read.ok()?.ok()?;
        String::from_utf8(bytes).ok()
    }

    #[expect(clippy::disallowed_methods, reason = "that nothing comes shows in real time only")]
    async fn hears_nothing(&mut self) {
        let read = tokio::time::timeout(MOMENT, self.socket.read_u8()).await;
        assert!(read.is_err(), "{read:?}");
    }

    #[expect(clippy::disallowed_methods, reason = "that nothing comes shows in real time only")]
    async fn arrived(&mut self) -> Option<String> {
        let told = tokio::time::timeout(MOMENT, self.told.recv()).await.ok()??;
        String::from_utf8(told).ok()
    }

    /// How it ended: an orderly close, or an error.
    #[expect(clippy::disallowed_methods, reason = "only a defect lets it stay open")]
    async fn ended(&mut self) -> Option<ErrorKind> {
        let read = tokio::time::timeout(MOMENT * 10, self.socket.read(&mut [0; 16])).await.expect("it ends");
        read.map_or_else(|why| Some(why.kind()), |count| (count > 0).then_some(ErrorKind::InvalidData))
    }
}

#[tokio::test]
async fn responses_are_lost_and_requests_arrive() {
    let mut line = Line::new().await;
    line.proxy.set(Fault::DropResponses);
    line.says("one").await;
    assert_eq!(line.arrived().await.as_deref(), Some("one"));
    line.hears_nothing().await;
    assert_eq!(line.proxy.swallowed(), 3);
    // Its stream has a hole, so it cannot be gone on with.
    line.proxy.set(Fault::None);
    assert_eq!(line.ended().await, None);
    line.socket = Line::connect(&line.proxy).await;
    line.says("again").await;
    assert_eq!(line.hears(5).await.as_deref(), Some("again"));
}

#[tokio::test]
async fn requests_are_lost_and_connections_stay() {
    for fault in [Fault::DropRequests, Fault::Blackhole] {
        let mut line = Line::new().await;
        line.proxy.set(fault);
        line.says("one").await;
        line.hears_nothing().await;
        assert_eq!(line.arrived().await, None, "{fault:?}");
        assert_eq!(line.proxy.swallowed(), 3, "{fault:?}");
    }
}

#[tokio::test]
async fn what_is_held_arrives_in_the_end() {
    let mut line = Line::new().await;
    line.proxy.set(Fault::Hold);
    line.says("one").await;
    line.hears_nothing().await;
    assert_eq!((line.arrived().await, line.proxy.swallowed()), (None, 0));
    line.proxy.set(Fault::None);
    assert_eq!(line.hears(3).await.as_deref(), Some("one"));
    assert!(line.proxy.held_up() >= 3);
    line.says("two").await;
    assert_eq!(line.hears(3).await.as_deref(), Some("two"));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a delay is real time")]
async fn a_delay_holds_up_each_way_and_keeps_the_order() {
    let mut line = Line::new().await;
    let (by, jitter) = (Duration::from_millis(150), Duration::from_millis(100));
    line.proxy.set(Fault::Delay { by, jitter });
    let began = Instant::now();
    for part in ["a", "b", "c", "d", "e"] {
        line.says(part).await;
    }
    assert_eq!(line.hears(5).await.as_deref(), Some("abcde"));
    let took = began.elapsed();
    // Under way at the same time: far from five times there and back.
    assert!(took >= by * 2 && took < by * 10, "{took:?}");
    assert_eq!(line.proxy.held_up(), 10);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a rate is real time")]
async fn a_narrow_line_passes_so_many_bytes_a_second() {
    let mut line = Line::new().await;
    line.proxy.set(Fault::Rate { bytes_per_s: 10_000 });
    let began = Instant::now();
    let text = "x".repeat(5_000);
    line.says(&text).await;
    assert_eq!(line.hears(5_000).await, Some(text));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(450), "{took:?}");
}

#[tokio::test]
async fn a_cut_comes_after_so_many_bytes_and_once() {
    let mut line = Line::new().await;
    line.proxy.set(Fault::CutResponsesAfter(4));
    line.says("sixsix").await;
    assert_eq!(line.hears(4).await.as_deref(), Some("sixs"));
    assert_eq!(line.ended().await, None);
    assert_eq!((line.proxy.swallowed(), line.proxy.torn()), (2, 1));
    line.socket = Line::connect(&line.proxy).await;
    line.says("again").await;
    assert_eq!(line.hears(5).await.as_deref(), Some("again"));
}

#[tokio::test]
async fn who_is_refused_is_closed_and_who_is_reset_is_told_so() {
    for (fault, how) in [(Fault::Refuse, None), (Fault::Reset, Some(ErrorKind::ConnectionReset))] {
        let mut line = Line::new().await;
        line.proxy.set(fault);
        assert_eq!(line.ended().await, how, "{fault:?}");
        assert!(line.proxy.torn() >= 2, "{fault:?}");
        // A new one does not live either.
        if let Ok(socket) = TcpStream::connect(("127.0.0.1", line.proxy.port())).await {
            line.socket = socket;
            assert_eq!(line.ended().await, how, "{fault:?}");
        }
    }
}
