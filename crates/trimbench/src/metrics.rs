//! Figures for Prometheus: over HTTP in the format that the client asks for, or in a file that a collector reads
//! (node_exporter's `--collector.textfile.directory`).
//!
//! A command fills a [`Registry`], whose figures are atomics. Nothing here waits for the command,
//! and the command waits for no client.

mod format;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::exit::Error;
use format::Format;

/// The time in which a client must send its request and receive the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request that is read, in bytes.
const LONGEST: usize = 8 << 10;

/// An address that is bound and doesn't answer yet.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
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
        let listener = bound.map_err(|error| {
            Error::Usage(format!(
                "cannot listen on {}: {error}; name HOST:PORT or :PORT, and a port that is free",
                units::names::harmless(address)
            ))
        })?;
        Ok(Server { listener })
    }

    /// The address that clients ask.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers `GET /metrics` in a thread of its own until the program ends.
    pub(crate) fn serve(self, registry: Arc<Registry>) {
        std::thread::spawn(move || {
            for stream in self.listener.incoming() {
                match stream {
                    // A client that goes away is its own trouble.
                    Ok(stream) => drop(answer(stream, &registry)),
                    // Out of descriptors, most likely: later there may be some.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        });
    }
}

fn answer(mut stream: TcpStream, registry: &Registry) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = request(&mut stream)?;
    let mut words = head.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = path.split('?').next().unwrap_or("");
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => {
            let format = Format::preferred(&head);
            ("200 OK", format.content_type(), in_format(format, registry))
        }
        ("GET" | "HEAD", "/") => (
            "200 OK",
            "text/plain; charset=utf-8",
            "trimbench: the figures are at /metrics\n".to_owned(),
        ),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "see /metrics\n".to_owned()),
        _ => (
            "405 Method Not Allowed",
            "text/plain",
            "GET it\n".to_owned(),
        ),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The head of a request, as far as it came in time.
fn request(stream: &mut TcpStream) -> io::Result<String> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < LONGEST {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => break,
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Returns all figures in a format.
fn in_format(format: Format, registry: &Registry) -> String {
    match format {
        Format::OpenMetrics => text(registry),
        Format::Plain => classic(&text(registry)),
    }
}

/// Returns all figures as text of OpenMetrics.
pub(crate) fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing into a String can't fail.
    let _ = encode(&mut text, registry);
    text
}

/// The older format of Prometheus, the only one that node_exporter takes from a file. In it a
/// counter's family ends in `_total`, and there are neither units nor kinds such as `info`.
fn classic(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let (end, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "gauge" => ("", "gauge"),
                _ => ("", "untyped"),
            };
            if let Some((_, words)) = help.take().filter(|(helped, _)| *helped == name) {
                text += &format!("# HELP {name}{end} {words}\n");
            }
            text += &format!("# TYPE {name}{end} {kind}\n");
        } else if !line.starts_with('#') {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// Replaces a file by the figures at once, so that no reader sees half of them. They are in the
/// older format of Prometheus, which node_exporter takes.
pub(crate) fn write_textfile(path: &Path, registry: &Registry) -> Result<(), Error> {
    let beside = beside(path);
    let written = fs::write(&beside, classic(&text(registry)));
    let written = written.and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&beside);
        Error::OutputWrite {
            path: path.to_path_buf(),
            source,
        }
    })
}

/// A name in the same directory. It does not end in `.prom`, which a collector would read.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::counter::Counter;

    fn registry() -> Registry {
        let mut registry = Registry::default();
        let reads = Counter::<u64>::default();
        reads.inc_by(7);
        registry.register("reads", "Reads", reads);
        registry
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn figures_are_served_and_other_requests_refused() {
        let server = Server::bind("127.0.0.1:0").unwrap();
        let address = server.address().unwrap();
        server.serve(Arc::new(registry()));
        let found = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(found.starts_with("HTTP/1.1 200 OK\r\n"), "{found}");
        assert!(found.contains("text/plain; version=0.0.4"), "{found}");
        assert!(
            found.ends_with("# TYPE reads_total counter\nreads_total 7\n"),
            "{found}"
        );
        let found = ask(
            address,
            "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n",
        );
        assert!(
            found.contains("application/openmetrics-text; version=1.0.0"),
            "{found}"
        );
        assert!(
            found.contains("\nreads_total 7\n") && found.ends_with("# EOF\n"),
            "{found}"
        );
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
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trimbench.prom");
        fs::write(&path, "old").unwrap();
        write_textfile(&path, &registry()).unwrap();
        let found = fs::read_to_string(&path).unwrap();
        let expected = "# HELP reads_total Reads.\n# TYPE reads_total counter\nreads_total 7\n";
        assert_eq!(found, expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let nowhere = folder.path().join("none/trimbench.prom");
        assert!(write_textfile(&nowhere, &registry()).is_err());
    }
}
