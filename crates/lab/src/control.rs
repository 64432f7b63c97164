//! The messages over a drive's control socket: a line of JSON each way.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::place::Place;
use crate::stats::Stats;

/// Longest line; a device card is a few kilobytes.
const LONGEST: usize = 1 << 20;
/// An honest server answers at once.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Are you there?
    Ping,
    Stats,
    /// Count from 0 again.
    ResetStats,
    /// `KEY=VALUE` of the device card, all or none.
    Set(Vec<String>),
    /// Look at how long reads take in the kernel, and correct the head start of the model.
    /// With reads at a depth: what each takes on the reader's side, in nanoseconds.
    Tune(Option<(u32, u64)>),
    Fault(String),
    ClearFaults,
    HangMs(u64),
    CutPower,
    RestorePower,
    /// Unmount the file and end.
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    Done,
    Stats(Box<Stats>),
    Refused(String),
}

/// Asks a drive's server.
pub(crate) fn ask(place: &Place, order: &Order) -> Result<Reply, LabError> {
    match try_ask(place, order) {
        Ok(Reply::Refused(why)) => Err(LabError::Refused {
            name: place.name(),
            why,
        }),
        Ok(reply) => Ok(reply),
        Err(error) => Err(LabError::Silent {
            name: place.name(),
            error,
        }),
    }
}

fn try_ask(place: &Place, order: &Order) -> io::Result<Reply> {
    let mut stream = UnixStream::connect(place.control())?;
    stream.set_write_timeout(Some(PATIENCE))?;
    send(&mut stream, order)?;
    receive(&stream, PATIENCE)
}

pub(crate) fn send(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Receives a message, in pieces of any size, within `patience` in all.
///
/// # Errors
/// The socket's error, `TimedOut`, or an error that says what is wrong with the message.
pub(crate) fn receive<T: for<'de> Deserialize<'de>>(
    mut stream: &UnixStream,
    patience: Duration,
) -> io::Result<T> {
    let began = Instant::now();
    let (mut line, mut piece) = (Vec::new(), [0; 4096]);
    while !line.ends_with(b"\n") && line.len() < LONGEST {
        let left = patience.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => line.extend_from_slice(&piece[..len]),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_never_ends_a_line_is_not_waited_for() {
        let (stream, mut other) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..100 {
                    if other.write_all(b" ").is_err() {
                        return;
                    }
                    thread::sleep(Duration::from_millis(10));
                }
                let _ = other.write_all(b"\"ping\"\n");
            });
            let received: io::Result<Order> = receive(&stream, Duration::from_millis(200));
            drop(stream);
            let error = received.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        });
    }
}
