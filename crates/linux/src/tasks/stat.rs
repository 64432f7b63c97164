//! `/proc/PID/task/TID/stat`.

/// A thread's state (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It runs, or waits for a processor.
    Running,
    /// It is blocked and no signal wakes it (`D`).
    Blocked,
    /// It sleeps until something happens or a signal comes (`S`).
    Sleeping,
    /// Stopped, a zombie, or a kernel thread that is idle.
    Other,
}

/// A thread's state and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Its name: 15 bytes at most of a user's, more of a kernel's worker.
    pub comm: String,
    /// Its state.
    pub state: State,
    /// The parent process.
    pub parent: u32,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
    /// When it started, in ticks since the machine did.
    pub started_ticks: u64,
}

/// `PF_KTHREAD` (Linux, include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    /// Parses the file; `None` of anything else.
    pub fn parse(text: &[u8]) -> Option<Stat> {
        let text = String::from_utf8_lossy(text);
        // A name may hold parentheses.
        let (before, after) = text.rsplit_once(')')?;
        let comm = before.split_once('(')?.1.to_owned();
        let mut fields = after.split_ascii_whitespace();
        let state = match fields.next()? {
            "R" => State::Running,
            "D" => State::Blocked,
            "S" => State::Sleeping,
            _ => State::Other,
        };
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        let started_ticks = fields.nth(12)?.parse().ok()?;
        Some(Stat {
            comm,
            state,
            parent,
            kernel: flags & KERNEL_THREAD != 0,
            started_ticks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read_whatever_its_name() {
        let text = b"44 (a) b (c) D 2 0 0 0 -1 69238880 0 0 0 0 7 11 0 0 0 -20 1 0 34 0 0 18446744073709551615 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            (stat.comm.as_str(), stat.state),
            ("a) b (c", State::Blocked)
        );
        assert_eq!((stat.parent, stat.started_ticks), (2, 34));
        assert!(stat.kernel, "69238880 has 0x200000");
        assert_eq!(Stat::parse(b"44 (a"), None);
        assert_eq!(Stat::parse(b""), None);
    }
}
