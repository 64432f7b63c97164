//! A file system in memory, gone when the test is over.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use linux::SysRoot;
use linux::stats::DeviceStats;

/// Mounted, on a loop device over a sparse image.
pub(crate) struct LoopFs {
    place: tempfile::TempDir,
    device: PathBuf,
}

impl LoopFs {
    /// 2 GiB of it; `mkfs` with its arguments, `options` as `mount -o`.
    pub(crate) fn new(mkfs: &[&str], options: &str) -> LoopFs {
        let place = tempfile::Builder::new()
            .prefix("trimbench-reclaimer-")
            .tempdir_in("/dev/shm")
            .unwrap();
        let image = place.path().join("image");
        std::fs::File::create(&image)
            .unwrap()
            .set_len(2 << 30)
            .unwrap();
        std::fs::create_dir(place.path().join("mount")).unwrap();
        let device = linux::loop_device::attach(&image).unwrap();
        let new = LoopFs { place, device };
        let (program, arguments) = mkfs.split_first().unwrap();
        must(Command::new(program).args(arguments).arg(&new.device));
        must(
            Command::new("mount")
                .args(["-o", options])
                .args([new.device.as_path(), &new.path()]),
        );
        new
    }

    /// Bytes discarded on its device so far.
    pub(crate) fn discarded(&self) -> u64 {
        let name = self.device.file_name().unwrap().to_str().unwrap();
        let stats = DeviceStats::open(&SysRoot::host(), name).unwrap();
        stats.read().unwrap().discard_sectors * 512
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.place.path().join("mount")
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        // io_uring lets go of its files a moment after whoever used it has ended.
        for _ in 0..50 {
            let done = Command::new("umount").arg(self.path()).output();
            if done.is_ok_and(|done| done.status.success()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = linux::loop_device::detach(&self.device);
    }
}

fn must(command: &mut Command) {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {said}");
}
