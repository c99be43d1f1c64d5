//! One request and one answer over a socket, for servers that say what a test wants.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// The head of a request, its request line first, and its body.
pub fn read(socket: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(socket.try_clone().expect("a socket"));
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().expect("a number");
        }
        head += &line;
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    (head, body)
}

/// Answers it; a client that was told enough may have gone.
pub fn answer(socket: &mut TcpStream, status: u16, text: &str) {
    let length = text.len();
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    let _ = socket.write_all((head + text).as_bytes());
}
