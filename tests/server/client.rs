//! A plain HTTP/1.1 client that can also misbehave.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(2);

/// A reply, whole.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Asserts the one shape of errors, and gives code and message.
    pub(crate) fn error(&self, status: u16) -> (String, String) {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{text}");
        let body = self.json();
        let error =
            body.get("error").and_then(Value::as_object).unwrap_or_else(|| panic!("{text}"));
        let fields: Vec<&str> = error.keys().map(String::as_str).collect();
        assert_eq!(fields, ["message", "type", "param", "code"], "{text}");
        let field = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (field("code"), field("message"))
    }
}

/// Opens a connection.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The bytes of a request that closes its connection.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    if !body.is_empty() || method == "POST" {
        write!(head, "Content-Length: {}\r\n", body.len()).unwrap();
    }
    head.push_str("\r\n");
    [head.into_bytes(), body.to_vec()].concat()
}

/// Sends a request and reads the whole reply.
pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    send_raw(address, &request(method, path, headers, body))
}

/// Sends bytes as they are and reads the whole reply.
pub(crate) fn send_raw(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = connect(address);
    // A service that refuses a request by its head does not read the rest.
    let _ = stream.write_all(bytes);
    read_reply(stream)
}

/// The head of a request whose body comes in chunks.
pub(crate) fn chunked_head(path: &str, media_type: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {media_type}\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes()
}

/// One chunk; an empty one ends the body.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Sends a body in chunks of this size, without its length in the head.
pub(crate) fn send_chunked(
    address: SocketAddr,
    path: &str,
    media_type: &str,
    body: &[u8],
    size: usize,
) -> Reply {
    let mut bytes = chunked_head(path, media_type);
    body.chunks(size).for_each(|part| bytes.extend(chunk(part)));
    bytes.extend(chunk(b""));
    send_raw(address, &bytes)
}

/// Reads a reply to the end of its connection.
pub(crate) fn read_reply(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let mut piece = [0; 8192];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            // The end of another test's child.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // A connection that was closed with unread bytes in it ends so.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&bytes)),
        }
    }
    parse(&bytes)
}

/// Reads a reply from its bytes.
pub(crate) fn parse(bytes: &[u8]) -> Reply {
    let end = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("no reply in {:?}", String::from_utf8_lossy(bytes)));
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut reply = Reply { status, headers, body: bytes[end + 4..].to_vec() };
    if reply.header("transfer-encoding") == Some("chunked") {
        reply.body = unchunk(&reply.body);
    }
    reply
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
        if size == 0 {
            break;
        }
    }
    body
}
