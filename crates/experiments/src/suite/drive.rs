//! The drive of a suite, as its log has it.

use serde::{Deserialize, Serialize};
use storage::raw::RawDevice;

/// The drive that a suite ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Drive {
    /// A block device.
    Device(Member),
    /// Several block devices as RAID 0.
    Raid0 {
        /// The devices, in their order.
        members: Vec<Member>,
        /// Whether md or a file system stripes.
        striping: Striping,
        /// Bytes for a file system: of equal shares, so that each striping has them.
        size_bytes: u64,
    },
    /// A file in a directory, as a loop device.
    File {
        /// The directory.
        directory: String,
        /// The size of the file in bytes.
        size_bytes: u64,
    },
    /// A simulated drive.
    Lab {
        /// The profile's name.
        profile: String,
        /// Its size in bytes.
        size_bytes: u64,
        /// How many times slower than its profile it is; 1 in logs that don't have it.
        #[serde(default = "as_fast", skip_serializing_if = "is_as_fast")]
        slower: f64,
    },
}

/// A block device: the drive itself, or a member of a RAID 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its path.
    pub path: String,
    /// Its model, where it has one.
    pub model: Option<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// The layer that stripes over the members of a RAID 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Striping {
    /// md: any file system can be on it.
    Md,
    /// A file system itself, as btrfs does.
    FileSystem,
}

fn as_fast() -> f64 {
    1.0
}

fn is_as_fast(slower: &f64) -> bool {
    *slower == as_fast()
}

impl Member {
    pub(crate) fn of(device: &RawDevice) -> Member {
        let found = storage::describe_device(device.path()).ok();
        let mut devices = found.into_iter().flat_map(|found| found.devices);
        Member {
            path: device.path().to_string_lossy().into_owned(),
            // Its own, or that of a drive below it.
            model: devices.find_map(|device| device.model),
            size_bytes: device.size_bytes(),
        }
    }

    /// The device in words.
    fn words(&self) -> String {
        let model = self.model.as_deref().map(str::trim);
        let size = record::units::bytes(self.size_bytes);
        match model.filter(|model| !model.is_empty()) {
            Some(model) => format!("{model} ({}, {size})", self.path),
            None => format!("{} ({size})", self.path),
        }
    }
}

impl Drive {
    /// How many times slower than the drive that it stands for a simulated one is; else 1.
    pub fn slower(&self) -> f64 {
        match self {
            Drive::Lab { slower, .. } => *slower,
            _ => as_fast(),
        }
    }

    /// The paths of its devices, or of its file's directory; none of a simulated one.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Drive::Device(device) => vec![&device.path],
            Drive::Raid0 { members, .. } => members.iter().map(|one| &*one.path).collect(),
            Drive::File { directory, .. } => vec![directory],
            Drive::Lab { .. } => Vec::new(),
        }
    }

    /// Its size in bytes.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Drive::Device(Member { size_bytes, .. })
            | Drive::Raid0 { size_bytes, .. }
            | Drive::File { size_bytes, .. }
            | Drive::Lab { size_bytes, .. } => *size_bytes,
        }
    }

    /// The drive in words, for titles.
    pub fn words(&self) -> String {
        match self {
            Drive::Device(device) => device.words(),
            Drive::Raid0 {
                members, striping, ..
            } => {
                let members: Vec<String> = members.iter().map(Member::words).collect();
                let by = match striping {
                    Striping::Md => "md's RAID 0",
                    Striping::FileSystem => "the file system's own RAID 0",
                };
                format!("{by} of {}", members.join(" and "))
            }
            Drive::File {
                directory,
                size_bytes,
            } => format!(
                "a file of {} in {directory}",
                record::units::bytes(*size_bytes)
            ),
            Drive::Lab {
                profile,
                size_bytes,
                slower,
            } => {
                let size = record::units::bytes(*size_bytes);
                match is_as_fast(slower) {
                    true => format!("simulated {profile} of {size}"),
                    false => format!("simulated {profile} of {size}, {slower} times slower"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raid0_is_named_by_its_members_and_survives_the_log() {
        let member = |path: &str, model: Option<&str>| Member {
            path: path.to_owned(),
            model: model.map(str::to_owned),
            size_bytes: 1 << 40,
        };
        let drive = Drive::Raid0 {
            members: vec![member("/dev/sda", Some("T500 ")), member("/dev/sdb", None)],
            striping: Striping::Md,
            size_bytes: 2 << 40,
        };
        let words = "md's RAID 0 of T500 (/dev/sda, 1.0 TiB) and /dev/sdb (1.0 TiB)";
        assert_eq!(drive.words(), words);
        let json = serde_json::to_value(&drive).unwrap();
        assert_eq!(
            (&json["kind"], &json["striping"]),
            (&"raid0".into(), &"md".into())
        );
        assert_eq!(serde_json::from_value::<Drive>(json).unwrap(), drive);
    }
}
