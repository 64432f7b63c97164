//! A recorded `/proc`, `/sys` and `/dev` for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::SysRoot;

/// A tree in a temporary directory.
pub(crate) struct Fake {
    directory: tempfile::TempDir,
}

impl Fake {
    pub(crate) fn new(mountinfo: &str) -> Fake {
        let fake = Fake {
            directory: tempfile::tempdir().unwrap(),
        };
        fake.write("proc/self/mountinfo", mountinfo);
        fake
    }

    pub(crate) fn sys(&self) -> SysRoot {
        SysRoot::at(self.directory.path())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A device at `sys/devices/PLACE`, whose last component is its name. A
    /// place inside another device's is a partition of that.
    pub(crate) fn device(&self, place: &str, number: &str, discard_max: Option<u64>) {
        let name = Path::new(place).file_name().unwrap().to_str().unwrap();
        let base = format!("sys/devices/{place}");
        self.write(&format!("{base}/dev"), number);
        self.write(&format!("{base}/size"), "2097152\n");
        if let Some(bytes) = discard_max {
            self.write(
                &format!("{base}/queue/discard_max_bytes"),
                &format!("{bytes}\n"),
            );
            self.write(
                &format!("{base}/queue/discard_max_hw_bytes"),
                "4294966784\n",
            );
            self.write(&format!("{base}/queue/discard_granularity"), "512\n");
            self.write(&format!("{base}/queue/max_discard_segments"), "256\n");
            self.write(&format!("{base}/queue/rotational"), "0\n");
            self.write(&format!("{base}/queue/scheduler"), "[none] mq-deadline\n");
        } else {
            self.write(&format!("{base}/partition"), "1\n");
        }
        self.link(&format!("sys/class/block/{name}"), &base);
        self.link(&format!("sys/dev/block/{number}"), &base);
        self.write(&format!("dev/{name}"), "");
    }

    /// `upper` is made of `lower`.
    pub(crate) fn slave(&self, upper_place: &str, lower_place: &str) {
        let name = Path::new(lower_place)
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        self.link(
            &format!("sys/devices/{upper_place}/slaves/{name}"),
            &format!("sys/devices/{lower_place}"),
        );
    }

    pub(crate) fn link(&self, from: &str, to: &str) {
        let from = self.directory.path().join(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        symlink(self.directory.path().join(to), from).unwrap();
    }
}
