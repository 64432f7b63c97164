//! An instance of our own.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{TraceError, Tracefs};
use crate::sysroot::entries;

/// The names of our instances begin with this.
pub const PREFIX: &str = "trimbench-";

/// The most that one read of the pipe returns: the kernel fills a page at a time.
const READ_BYTES: usize = 64 << 10;

/// An instance of tracing: its own buffer, events and clock (`mono`, as `CLOCK_MONOTONIC` has it).
/// Dropping it removes it.
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    dir: PathBuf,
    /// Open as long as the instance is used, so that nobody else can remove it.
    pipe: Option<File>,
    /// The beginning of a line that is not complete yet.
    rest: Vec<u8>,
    /// Kept, because a reading without events should cost one call.
    buffer: Vec<u8>,
}

impl Instance {
    /// Removes instances that killed processes left, and makes a new one with `buffer_kib` KiB for
    /// each processor. It records nothing until an event is switched on.
    ///
    /// # Errors
    /// When tracefs does not let this user.
    pub fn create(tracefs: Tracefs, buffer_kib: u32) -> Result<Instance, TraceError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        sweep(&tracefs);
        let mut failed = None;
        // Another process that sweeps may remove it before its pipe is open.
        for _ in 0..5 {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREFIX}{}-{number}", std::process::id());
            let dir = tracefs.instances().join(name);
            let made = fs::create_dir(&dir).and_then(|()| {
                File::options()
                    .read(true)
                    .custom_flags(libc::O_NONBLOCK)
                    .open(dir.join("trace_pipe"))
            });
            match made {
                Ok(pipe) => {
                    let instance = Instance {
                        tracefs,
                        dir,
                        pipe: Some(pipe),
                        rest: Vec::new(),
                        buffer: vec![0; READ_BYTES],
                    };
                    instance.set("trace_clock", "mono")?;
                    instance.set("buffer_size_kb", &buffer_kib.to_string())?;
                    return Ok(instance);
                }
                Err(error) => {
                    let _ = fs::remove_dir(&dir);
                    failed = Some(error);
                }
            }
        }
        Err(TraceError::Use {
            what: "an instance can't be made".to_owned(),
            source: failed.unwrap_or_else(|| io::ErrorKind::Other.into()),
        })
    }

    /// Whether the kernel has an event.
    pub fn has(&self, system: &str, event: &str) -> bool {
        self.tracefs.has(system, event)
    }

    /// Switches an event on, with a filter that the kernel applies (empty: all of them).
    ///
    /// # Errors
    /// When the kernel has no such event or does not understand the filter.
    pub fn enable(&self, system: &str, event: &str, filter: &str) -> Result<(), TraceError> {
        let place = format!("events/{system}/{event}");
        if !filter.is_empty() {
            self.set(&format!("{place}/filter"), filter)?;
        }
        self.set(&format!("{place}/enable"), "1")
    }

    /// Switches an event off.
    ///
    /// # Errors
    /// When the kernel has no such event.
    pub fn disable(&self, system: &str, event: &str) -> Result<(), TraceError> {
        self.set(&format!("events/{system}/{event}/enable"), "0")
    }

    /// Switches the stacks of all events on or off, at once. (Without an event's trigger, Linux 6.18
    /// waits 0.1 s.)
    ///
    /// # Errors
    /// When the kernel has no such option.
    pub fn stacks(&self, on: bool) -> Result<(), TraceError> {
        self.set("options/stacktrace", if on { "1" } else { "0" })
    }

    /// Reads the complete lines that have come since the last call, without waiting.
    ///
    /// # Errors
    /// When the pipe can't be read.
    pub fn read(&mut self, each: &mut dyn FnMut(&str)) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        loop {
            let count = match pipe.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.rest.extend_from_slice(&self.buffer[..count]);
            let end = self.rest.iter().rposition(|byte| *byte == b'\n');
            if let Some(end) = end {
                let complete: Vec<u8> = self.rest.drain(..=end).collect();
                String::from_utf8_lossy(&complete)
                    .lines()
                    .for_each(&mut *each);
            }
        }
    }

    /// Events that the kernel dropped because its buffer was full.
    pub fn lost(&self) -> u64 {
        let all = self.dir.join("per_cpu");
        let stats = |cpu: &String| fs::read_to_string(all.join(cpu).join("stats")).ok();
        let texts = entries(&all);
        texts.iter().filter_map(stats).map(|text| lost(&text)).sum()
    }

    fn set(&self, file: &str, text: &str) -> Result<(), TraceError> {
        fs::write(self.dir.join(file), text).map_err(|source| TraceError::Use {
            what: format!("writing {text:?} to its file {file}"),
            source,
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.set("tracing_on", "0");
        let _ = self.set("events/enable", "0");
        self.pipe = None;
        // If this fails, the next start tries again.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Removes our instances that no process reads from.
fn sweep(tracefs: &Tracefs) {
    let all = tracefs.instances();
    for name in entries(&all).iter().filter(|one| one.starts_with(PREFIX)) {
        let _ = fs::remove_dir(all.join(name));
    }
}

/// The sum of what a processor's `stats` counts as lost.
fn lost(stats: &str) -> u64 {
    let figure = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    ["overrun:", "dropped events:"]
        .into_iter()
        .filter_map(figure)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_added_up() {
        let text =
            "entries: 3\noverrun: 12\ncommit overrun: 7\ndropped events: 5\nread events: 9\n";
        assert_eq!(lost(text), 17);
        assert_eq!(lost(""), 0);
    }

    #[test]
    fn an_instance_traces_and_is_gone_afterwards() {
        let Ok(tracefs) = Tracefs::find() else {
            return testkit::gate::skip("need tracefs and root");
        };
        let instance = Instance::create(tracefs, 64).unwrap();
        let dir = instance.dir.clone();
        assert!(instance.has("block", "block_rq_issue") && !instance.has("block", "none"));
        instance
            .enable("block", "block_rq_issue", "rwbs ~ \"D*\"")
            .unwrap();
        assert!(instance.enable("block", "nothing", "").is_err());
        instance.stacks(true).unwrap();
        instance.stacks(false).unwrap();
        assert_eq!(instance.lost(), 0);
        assert!(dir.is_dir());
        // A second one leaves the first, which is in use.
        let second = Instance::create(Tracefs::find().unwrap(), 64).unwrap();
        assert!(dir.is_dir());
        // One whose process was killed has no reader.
        let stale = second.tracefs.instances().join("trimbench-0-0");
        fs::create_dir_all(&stale).unwrap();
        let third = Instance::create(Tracefs::find().unwrap(), 64).unwrap();
        assert!(!stale.exists() && dir.is_dir());
        drop(instance);
        assert!(
            !third
                .tracefs
                .instances()
                .join(dir.file_name().unwrap())
                .exists()
        );
    }
}
