//! File systems and loop devices of the size that these tests need.

use std::path::{Path, PathBuf};

use testkit::gate::{self, Need};
use testkit::loop_fs::{Fs, LoopFs, On};
pub(crate) use testkit::loop_fs::{LoopDevice, patiently as run};

/// Whether a test can run here. Where it must (`CI` is set), not being able to is a failure.
pub(crate) fn can(programs: &[&'static str]) -> bool {
    let mut needs = vec![Need::Root, Need::File("/dev/loop-control")];
    needs.extend(programs.iter().map(|program| Need::Tool(program)));
    !gate::lacks(&needs)
}

/// A loop device in memory.
pub(crate) fn device(mib: u64) -> LoopDevice {
    LoopDevice::new(mib, On::Tmpfs)
}

/// A mounted file system of 512 MiB in memory.
pub(crate) fn made(fs: &str, options: &str) -> LoopFs {
    LoopFs::new(Fs::named(fs), options, 512, On::Tmpfs)
}

/// Attaches a loop device that nobody detaches by itself.
pub(crate) fn attach(over: &Path) -> PathBuf {
    PathBuf::from(run("losetup", &["-f", "--show", over.to_str().unwrap()]))
}

/// The first sector of a disk with one partition, from 1 MiB on.
pub(crate) fn partition_table(sectors: u32) -> [u8; 512] {
    let mut sector = [0u8; 512];
    sector[446 + 4] = 0x83; // Linux
    sector[446 + 8..446 + 12].copy_from_slice(&2048u32.to_le_bytes());
    sector[446 + 12..446 + 16].copy_from_slice(&sectors.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}
