//! The work that both drives do in each case.

/// One case: the same work for both drives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// fio's word for it.
    pub(crate) rw: &'static str,
    /// The part of fio's figures that counts it.
    pub(crate) counted: &'static str,
    pub(crate) block: u64,
    pub(crate) depth: u32,
}

const fn read_4k(name: &'static str, depth: u32) -> Case {
    Case {
        name,
        rw: "randread",
        counted: "read",
        block: 4 << 10,
        depth,
    }
}

const fn of_1m(name: &'static str, rw: &'static str, counted: &'static str, depth: u32) -> Case {
    Case {
        name,
        rw,
        counted,
        block: 1 << 20,
        depth,
    }
}

/// Discards come last: they take the data. The kernel sends one at a time.
pub(crate) const ALL: [Case; 6] = [
    read_4k("read-4k-qd1", 1),
    read_4k("read-4k-qd8", 8),
    read_4k("read-4k-qd32", 32),
    of_1m("read-1m-qd8", "read", "read", 8),
    of_1m("write-1m-qd8", "write", "write", 8),
    of_1m("discard-1m", "randtrim", "trim", 1),
];
