//! The socket: connections, their time limits, and the end.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::layers::log;
use super::limits::Limits;
use super::wire::Wire;
use crate::error::{Error, Result};

/// Bytes of a request's head; a longer one is refused with 431.
pub(super) const MAX_HEAD: usize = 64 << 10;

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 1024;

/// The other end of the connection that a request came on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

/// The routes, told who asks.
#[derive(Debug)]
struct Named {
    service: TowerToHyperService<Router>,
    peer: Peer,
}

type Inner = TowerToHyperService<Router>;

impl Service<Request<Incoming>> for Named {
    type Response = <Inner as Service<Request<Incoming>>>::Response;
    type Error = <Inner as Service<Request<Incoming>>>::Error;
    type Future = <Inner as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.service.call(request)
    }
}

/// A bound socket.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds the address; port 0 takes a free one.
    ///
    /// # Errors
    /// [`Error::Unavailable`] naming the address.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let bind = || {
            let socket =
                if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // A restart must not wait for connections of the last run to be forgotten.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let socket = socket.listen(BACKLOG)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        bind().map_err(|error: std::io::Error| Error::Unavailable {
            what: format!("the address {address}"),
            reason: error.to_string(),
            remedy: "choose another with --host and --port, or end the program that has it"
                .to_owned(),
        })
    }

    /// The address, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers until `end` comes, then lets running requests finish within their time.
pub async fn serve(
    listener: Listener,
    router: Router,
    limits: &Limits,
    end: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let connections = Arc::new(Semaphore::new(limits.connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(MAX_HEAD);
    let mut end = pin!(end);
    loop {
        // The permit is had before a connection is accepted: the system holds the others.
        let accepted = tokio::select! {
            () = &mut end => break,
            accepted = accept(&listener.socket, &connections) => accepted,
        };
        let Some((stream, peer, permit)) = accepted else { continue };
        let service = Named { service: TowerToHyperService::new(router.clone()), peer };
        let wire = TokioIo::new(Wire::new(stream, limits.write_time));
        let connection = http.serve_connection(wire, service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A connection that breaks off is the client's business; requests are logged.
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    let open = graceful.count();
    if timeout(limits.shutdown_time, graceful.shutdown()).await.is_err() {
        log(&format!(
            "ending with requests unfinished after {} s ({open} connections were open)",
            limits.shutdown_time.as_secs()
        ));
    }
}

async fn accept(
    socket: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, Peer, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match socket.accept().await {
        Ok((stream, peer)) => {
            // Replies are written whole; waiting for more to send would only delay them.
            let _ = stream.set_nodelay(true);
            Some((stream, Peer(peer), permit))
        }
        Err(error) => {
            // Too many open files, or a client that left: others may do better soon.
            log(&format!("cannot accept a connection: {error}"));
            sleep(std::time::Duration::from_millis(100)).await;
            None
        }
    }
}
