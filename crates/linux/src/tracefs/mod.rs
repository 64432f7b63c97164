//! Tracepoints: an instance of our own under tracefs, and its text.
//!
//! An instance has its own buffer and its own events, so it disturbs no other user of tracing. It
//! can't outlive its user for long: [`Instance::create`] removes every instance of ours that no
//! process reads from. The kernel refuses to remove one whose pipe is open.

mod instance;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

pub use instance::{Instance, PREFIX};

/// Places where tracefs is mounted, the usual one first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The kernel's tracefs, where it is mounted, or in a mount of our own that nobody else sees.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Our own mount, which ends with this descriptor.
    _mount: Option<OwnedFd>,
}

/// Why the kernel's events can't be traced.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TraceError {
    #[error("tracefs is not mounted and can't be mounted: {0}; run it as root on the host")]
    Unavailable(io::Error),
    #[error("tracefs can't be used: {what}: {source}; run it as root on the host")]
    Use { what: String, source: io::Error },
}

impl Tracefs {
    /// Finds tracefs, or mounts it where no other process sees the mount.
    ///
    /// # Errors
    /// Without root, or in a container or a kernel that has no tracefs to offer.
    pub fn find() -> Result<Tracefs, TraceError> {
        let mounted = PLACES.iter().map(Path::new);
        let mut usable = mounted.filter(|place| place.join("instances").is_dir());
        if let Some(place) = usable.next() {
            return Ok(Tracefs {
                root: place.to_path_buf(),
                _mount: None,
            });
        }
        let mount = detached().map_err(|error| TraceError::Unavailable(error.into()))?;
        Ok(Tracefs {
            root: PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())),
            _mount: Some(mount),
        })
    }

    /// Whether the kernel has an event.
    pub fn has(&self, system: &str, event: &str) -> bool {
        self.root.join("events").join(system).join(event).is_dir()
    }

    /// The directory that holds the instances.
    fn instances(&self) -> PathBuf {
        self.root.join("instances")
    }
}

/// A mount of tracefs that is attached nowhere.
fn detached() -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

// The text of `trace_pipe`, line by line.

/// A line of `trace_pipe`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Line<'a> {
    /// An event.
    Event(Entry<'a>),
    /// The head of a stack; its frames follow. `pid` is the thread that it belongs to.
    Stack {
        /// The thread.
        pid: u32,
    },
    /// A frame of the stack before it, the innermost first.
    Frame(&'a str),
    /// Events were lost before this line.
    Lost(u64),
    /// Anything else.
    Other,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry<'a> {
    /// The name of the thread that caused it; `<...>` if the kernel has forgotten it.
    pub comm: &'a str,
    /// That thread.
    pub pid: u32,
    /// When, in seconds of the instance's clock.
    pub at_s: f64,
    /// The event's name.
    pub event: &'a str,
    /// Its fields, as its format prints them.
    pub fields: &'a str,
}

/// Parses a line (Linux, Documentation/trace/ftrace.rst).
pub fn parse(line: &str) -> Line<'_> {
    if let Some(frame) = line.strip_prefix(" => ") {
        return Line::Frame(frame.trim());
    }
    if let Some(lost) = lost(line) {
        return Line::Lost(lost);
    }
    entry(line).unwrap_or(Line::Other)
}

/// `CPU:1 [LOST 23 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    let count = line.strip_prefix("CPU:")?.split_once("[LOST ")?.1;
    count.split_whitespace().next()?.parse().ok()
}

fn entry(line: &str) -> Option<Line<'_>> {
    let (comm, pid, rest) = task(line)?;
    // Flags of interrupts, then the time.
    let (_flags, rest) = rest.trim_start().split_once(' ')?;
    let (at, rest) = rest.trim_start().split_once(": ")?;
    let at_s = at.parse().ok()?;
    if rest.starts_with("<stack trace>") {
        return Some(Line::Stack { pid });
    }
    let (event, fields) = rest.split_once(':')?;
    Some(Line::Event(Entry {
        comm,
        pid,
        at_s,
        event,
        fields: fields.trim_start(),
    }))
}

/// `  name-123     [001] rest`: a name may hold any of these signs itself.
fn task(line: &str) -> Option<(&str, u32, &str)> {
    for (at, _) in line.match_indices(" [") {
        let rest = &line[at + 2..];
        let Some((cpu, rest)) = rest.split_once("] ") else {
            continue;
        };
        if cpu.is_empty() || !cpu.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let Some((comm, pid)) = line[..at].trim_end().rsplit_once('-') else {
            continue;
        };
        if let Ok(pid) = pid.parse() {
            return Some((comm.trim_start(), pid, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_stacks_and_losses_are_told_apart() {
        let line = "            sync-2041    [001] .....  1736.055027: block_bio_queue: 7,0 DS 43040 + 32 [sync]";
        let Line::Event(entry) = parse(line) else {
            panic!("{:?}", parse(line));
        };
        assert_eq!(
            (entry.comm, entry.pid, entry.event),
            ("sync", 2041, "block_bio_queue")
        );
        assert_eq!(entry.at_s, 1736.055027);
        assert_eq!(entry.fields, "7,0 DS 43040 + 32 [sync]");
        let odd = "  a-b [1] c-22      [001] ..s..  1.5: block_rq_complete: 7,0 D () 1 + 2 [0]";
        assert!(matches!(
            parse(odd),
            Line::Event(Entry {
                comm: "a-b [1] c",
                pid: 22,
                ..
            })
        ));
        let stack = "           rustc-1649    [001] .....  1733.438833: <stack trace>";
        assert_eq!(parse(stack), Line::Stack { pid: 1649 });
        assert_eq!(parse(" => submit_bio_wait"), Line::Frame("submit_bio_wait"));
        assert_eq!(parse("CPU:1 [LOST 23 EVENTS]"), Line::Lost(23));
        assert_eq!(parse(""), Line::Other);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in ".{0,200}") {
            parse(&line);
        }
    }
}
