//! A recorded `/proc`, `/sys` and `/dev` for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A tree in a temporary directory, removed when it is dropped.
#[derive(Debug)]
pub struct Machine {
    directory: tempfile::TempDir,
}

impl Machine {
    /// A machine with these mounts and no devices.
    pub fn new(mountinfo: &str) -> Machine {
        let machine = Machine {
            directory: tempfile::tempdir().unwrap(),
        };
        machine.write("proc/self/mountinfo", mountinfo);
        machine
    }

    /// Its root, as `SysRoot::at` takes it.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file of it; its directories are made.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A device at `sys/devices/PLACE`, whose last component is its name. A
    /// place inside another device's is a partition of that.
    pub fn device(&self, place: &str, number: &str, discard_max: Option<u64>) {
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
    pub fn slave(&self, upper_place: &str, lower_place: &str) {
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

    /// Makes a symbolic link in it.
    pub fn link(&self, from: &str, to: &str) {
        let from = self.directory.path().join(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        symlink(self.directory.path().join(to), from).unwrap();
    }
}
