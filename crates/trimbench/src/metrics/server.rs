//! Answers `GET /metrics` for a bounded number of clients, in one thread.
//!
//! Each client has a deadline. So clients that send nothing, send slowly or don't read keep no
//! other client waiting.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::format::Format;
use super::in_format;
use crate::exit::{Error, usage};

/// The time in which a client must send its request, and that in which it must receive the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request that is read, in bytes.
const LONGEST: usize = 8 << 10;

/// Clients at once. For one more, the client closest to its deadline is disconnected.
const MOST_CLIENTS: usize = 128;

/// The server accepts no client for this time after it failed to: most likely it is out of
/// descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// An address that is bound and doesn't answer yet.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    patience: Duration,
}

impl Server {
    /// Binds `HOST:PORT`; `:PORT` is that port on every address of this machine. Port 0 takes a
    /// free one.
    pub(crate) fn bind(address: &str) -> Result<Server, Error> {
        let bound = match address.strip_prefix(':') {
            // A machine without IPv6 has the second one alone.
            Some(port) => TcpListener::bind(format!("[::]:{port}"))
                .or_else(|_| TcpListener::bind(format!("0.0.0.0:{port}"))),
            None => TcpListener::bind(address),
        };
        let listener = bound.and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| {
            usage(format!(
                "cannot listen on {}: {error}; name HOST:PORT or :PORT, and a port that is free",
                record::units::names::harmless(address)
            ))
        })?;
        Ok(Server {
            listener,
            patience: PATIENCE,
        })
    }

    /// The address that clients ask.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers `GET /metrics` in a thread of its own until the program ends.
    pub(crate) fn serve(self, registry: Arc<Registry>) {
        std::thread::spawn(move || {
            let mut clients = Vec::new();
            let mut accepts_at = Instant::now();
            loop {
                self.turn(&mut clients, &mut accepts_at, &registry);
            }
        });
    }

    /// Waits until something can be done, and does it.
    fn turn(&self, clients: &mut Vec<Client>, accepts_at: &mut Instant, registry: &Registry) {
        let now = Instant::now();
        let accepts = *accepts_at <= now;
        let next = clients.iter().map(|client| client.until);
        let next = next.chain((!accepts).then_some(*accepts_at)).min();
        let left = next.map(|next| next.saturating_duration_since(now));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut waits: Vec<PollFd<'_>> = clients.iter().map(Client::wait).collect();
        if accepts {
            waits.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        if poll(&mut waits, left.as_ref()).is_err() {
            return;
        }
        let ready: Vec<bool> = waits
            .iter()
            .map(|wait| !wait.revents().is_empty())
            .collect();
        let now = Instant::now();
        let mut each = ready.iter();
        clients.retain_mut(|client| {
            let is_ready = each.next().is_some_and(|ready| *ready);
            let goes_on = !is_ready || client.go_on(registry, now + self.patience);
            goes_on && client.until > now
        });
        if accepts && ready.last() == Some(&true) {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(clients, stream, now),
                // The client is gone already.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => *accepts_at = now + PAUSE,
            }
        }
    }

    fn admit(&self, clients: &mut Vec<Client>, stream: TcpStream, now: Instant) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if clients.len() >= MOST_CLIENTS {
            let oldest = (0..clients.len()).min_by_key(|&at| clients[at].until);
            oldest.map(|at| clients.swap_remove(at));
        }
        clients.push(Client {
            stream,
            until: now + self.patience,
            head: Vec::new(),
            answer: None,
        });
    }
}

/// A client's connection.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    /// When it is disconnected at the latest.
    until: Instant,
    /// The bytes that it sent so far.
    head: Vec<u8>,
    /// Its answer, behind what it has already. `None` before its request has come.
    answer: Option<io::Cursor<Vec<u8>>>,
}

impl Client {
    fn wait(&self) -> PollFd<'_> {
        let flags = match self.answer {
            None => PollFlags::IN,
            Some(_) => PollFlags::OUT,
        };
        PollFd::new(&self.stream, flags)
    }

    /// Reads and writes what is possible now. Returns whether there is more to do; `until` is the
    /// deadline of an answer that begins now.
    fn go_on(&mut self, registry: &Registry, until: Instant) -> bool {
        let mut piece = [0; 1024];
        while self.answer.is_none() {
            let ended = match self.stream.read(&mut piece) {
                Ok(count) => {
                    self.head.extend_from_slice(&piece[..count]);
                    count == 0
                }
                Err(error) => return is_passing(&error),
            };
            if ended && self.head.is_empty() {
                return false;
            }
            let is_whole = self.head.windows(4).any(|end| end == b"\r\n\r\n");
            if ended || is_whole || self.head.len() >= LONGEST {
                let answer = answer(&self.head, registry);
                (self.answer, self.until) = (Some(io::Cursor::new(answer)), until);
            }
        }
        let Some(answer) = &mut self.answer else {
            return false;
        };
        loop {
            let at = usize::try_from(answer.position()).unwrap_or(usize::MAX);
            match answer.get_ref().get(at..).unwrap_or_default() {
                [] => return false,
                rest => match self.stream.write(rest) {
                    Ok(0) => return false,
                    Ok(count) => answer.set_position(answer.position() + count as u64),
                    Err(error) => return is_passing(&error),
                },
            }
        }
    }
}

/// Whether the next turn may succeed.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// The whole answer to a request.
fn answer(head: &[u8], registry: &Registry) -> Vec<u8> {
    const PLAIN: &str = "text/plain; charset=utf-8";
    let is_long = head.len() >= LONGEST;
    let head = String::from_utf8_lossy(head);
    let mut words = head.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = path.split('?').next().unwrap_or("");
    let (status, kind, body) = match (method, path) {
        _ if is_long => (
            "431 Request Header Fields Too Large",
            PLAIN,
            "send less\n".into(),
        ),
        ("GET" | "HEAD", "/metrics") => {
            let format = Format::preferred(&head);
            ("200 OK", format.content_type(), in_format(format, registry))
        }
        ("GET" | "HEAD", "/") => {
            let words = "trimbench: the figures are at /metrics\n";
            ("200 OK", PLAIN, words.to_owned())
        }
        ("GET" | "HEAD", _) => ("404 Not Found", PLAIN, "see /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", PLAIN, "GET it\n".to_owned()),
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method != "HEAD" {
        answer += &body;
    }
    answer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::counter::Counter;

    /// So long that no test sees its end.
    const LONG: Duration = Duration::from_secs(3600);

    fn serve(patience: Duration, registry: Registry) -> SocketAddr {
        let mut server = Server::bind("127.0.0.1:0").unwrap();
        server.patience = patience;
        let address = server.address().unwrap();
        server.serve(Arc::new(registry));
        address
    }

    /// A registry with some figures; each has a description of `length` bytes.
    fn registry(figures: usize, length: usize) -> Registry {
        let mut registry = Registry::default();
        for number in 0..figures {
            let reads = Counter::<u64>::default();
            reads.inc_by(7);
            registry.register(format!("reads_{number}"), "R".repeat(length), reads);
        }
        registry
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        // A test that waits in vain fails.
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    const GET: &str =
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n";

    fn is_open(stream: &TcpStream) -> bool {
        stream.set_nonblocking(true).unwrap();
        let read = (&*stream).read(&mut [0; 1]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until the server has closed a connection.
    fn until_closed(mut stream: &TcpStream) -> usize {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut all = Vec::new();
        match stream.read_to_end(&mut all) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("{error}"),
            _ => all.len(),
        }
    }

    #[test]
    fn figures_are_served_and_other_requests_refused() {
        let address = serve(PATIENCE, registry(1, 5));
        let found = ask(address, GET);
        assert!(found.starts_with("HTTP/1.1 200 OK\r\n"), "{found}");
        assert!(
            found.contains(Format::OpenMetrics.content_type())
                && found.contains("\nreads_0_total 7\n")
        );
        assert!(found.ends_with("# EOF\n"), "{found}");
        let head = ask(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(address, "GET /etc/passwd HTTP/1.1\r\n\r\n").contains("404"));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").contains("405"));
        assert!(ask(address, "\r\n\r\n").contains("405"));
        // The port is taken.
        let again = Server::bind(&address.to_string()).unwrap_err().to_string();
        assert!(again.contains("cannot listen on 127.0.0.1:"), "{again}");
    }

    #[test]
    fn idle_and_slow_clients_keep_nobody_waiting() {
        // An answer that no socket buffer takes at once.
        let address = serve(LONG, registry(64, 1 << 20));
        let connect = |_| TcpStream::connect(address).unwrap();
        let idle: Vec<_> = (0..60).map(connect).collect();
        let mut partial = connect(0);
        partial.write_all(b"GET /metrics HT").unwrap();
        let mut slow = connect(0);
        slow.write_all(GET.as_bytes()).unwrap();
        assert!(ask(address, GET).ends_with("# EOF\n"));
        assert!(idle.iter().all(is_open) && is_open(&partial));
        // What came in pieces is answered, too, and a slow reader gets all.
        partial.set_nonblocking(false).unwrap();
        partial.write_all(b"TP/1.1\r\n\r\n").unwrap();
        assert!(until_closed(&partial) > 64 << 20);
        assert!(until_closed(&slow) > 64 << 20);
    }

    #[test]
    fn a_client_too_many_replaces_the_oldest() {
        let address = serve(LONG, registry(1, 5));
        let idle: Vec<_> = (0..3 * MOST_CLIENTS)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        assert!(ask(address, GET).contains("200 OK"));
        let open = idle.iter().filter(|stream| is_open(stream)).count();
        assert!((1..MOST_CLIENTS).contains(&open), "{open}");
        assert!(is_open(&idle[idle.len() - 1]) && !is_open(&idle[0]));
    }

    #[test]
    fn a_deadline_ends_what_does_not_come() {
        let address = serve(Duration::from_millis(50), registry(64, 1 << 20));
        let idle = TcpStream::connect(address).unwrap();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(GET.as_bytes()).unwrap();
        assert_eq!(until_closed(&idle), 0);
        std::thread::sleep(Duration::from_millis(500));
        assert!(until_closed(&slow) < 64 << 20, "cut off");
    }

    #[test]
    fn a_head_without_end_is_refused() {
        let address = serve(LONG, registry(1, 5));
        let mut stream = TcpStream::connect(address).unwrap();
        let endless = "GET /metrics HTTP/1.1\r\n".to_owned() + &"x: y\r\n".repeat(1 << 16);
        // The server may have closed the connection before all is sent.
        let _ = stream.write_all(endless.as_bytes());
        until_closed(&stream);
        let long = format!(
            "GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n",
            "y".repeat(LONGEST - 30)
        );
        assert_eq!(long.len() % 1024, 0, "nothing is left unread");
        assert!(ask(address, &long).contains("431"));
        assert!(ask(address, GET).contains("200 OK"));
    }
}
