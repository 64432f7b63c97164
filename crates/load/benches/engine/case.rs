//! The cases and the tools.

use std::path::PathBuf;
use std::time::Duration;

use crate::options::Options;

/// Where the I/O of a case goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// Nowhere: no-operations.
    Nowhere,
    /// A file on the disk of the directory given.
    Disk,
    /// A loop device over a file in memory.
    Loop,
}

/// One case: the same work for every tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) place: Where,
    pub(crate) depth: u32,
    /// Completions waited for at once, and replaced at once.
    pub(crate) batch: u32,
}

pub(crate) const BLOCK: u32 = 4096;

pub(crate) const ALL: [Case; 5] = [
    Case {
        name: "nop-b8",
        place: Where::Nowhere,
        depth: 8,
        batch: 8,
    },
    Case {
        name: "disk-qd8",
        place: Where::Disk,
        depth: 8,
        batch: 1,
    },
    Case {
        name: "disk-qd32",
        place: Where::Disk,
        depth: 32,
        batch: 8,
    },
    Case {
        name: "loop-qd8",
        place: Where::Loop,
        depth: 8,
        batch: 1,
    },
    Case {
        name: "loop-qd32",
        place: Where::Loop,
        depth: 32,
        batch: 8,
    },
];

/// The tools that do the work.
#[derive(Debug, Clone)]
pub(crate) enum Tool {
    /// Our actor: every I/O timed and recorded, sampled every 100 ms.
    Ours,
    /// The same actor with the engine libaio; not where there is nothing to read.
    Libaio,
    /// Our ring, submitted and reaped, with nothing measured.
    Bare,
    /// fio with its defaults.
    FioDefaults,
    /// fio with registered files and buffers, batches, and latencies on.
    FioTuned,
    /// fio's `t/io_uring`, where the variable `T_IO_URING` names it.
    TIoUring(PathBuf),
}

impl Tool {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Tool::Ours => "ours",
            Tool::Libaio => "libaio",
            Tool::Bare => "bare",
            Tool::FioDefaults => "fio",
            Tool::FioTuned => "fio-tuned",
            Tool::TIoUring(_) => "t/io_uring",
        }
    }
}

pub(crate) fn tools(case: &Case, options: &Options) -> Vec<Tool> {
    let mut tools = vec![Tool::Ours, Tool::Bare];
    if case.place != Where::Nowhere {
        tools.push(Tool::Libaio);
    }
    if options.fio {
        tools.extend([Tool::FioDefaults, Tool::FioTuned]);
    }
    if let Some(path) = std::env::var_os("T_IO_URING") {
        tools.push(Tool::TIoUring(path.into()));
    }
    tools
}

/// The cost of one run of one tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Processor time in user mode per I/O, in microseconds.
    pub(crate) user_us: f64,
    /// The same in the kernel.
    pub(crate) system_us: f64,
    /// I/Os per second.
    pub(crate) iops: f64,
}

impl Measured {
    /// From totals.
    pub(crate) fn new(cpu: Cpu, ios: f64, wall: Duration) -> Measured {
        Measured {
            user_us: cpu.user.as_secs_f64() * 1e6 / ios,
            system_us: cpu.system.as_secs_f64() * 1e6 / ios,
            iops: ios / wall.as_secs_f64(),
        }
    }

    pub(crate) fn total_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

/// Processor time used so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl Cpu {
    /// Of this process.
    pub(crate) fn own() -> Cpu {
        Cpu::of(libc::RUSAGE_SELF)
    }

    /// Of the children that have ended.
    pub(crate) fn children() -> Cpu {
        Cpu::of(libc::RUSAGE_CHILDREN)
    }

    fn of(who: libc::c_int) -> Cpu {
        // SAFETY: all-zero is a valid value, which the call overwrites.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        Cpu {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
        }
    }

    /// The time used since.
    pub(crate) fn since(self, earlier: Cpu) -> Cpu {
        Cpu {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}
