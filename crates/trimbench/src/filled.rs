//! The stores of simulated drives that fill up while a command works on the drives.
//!
//! The file system on such a drive meets `EIO` and nothing more. The drive knows that its store is
//! what is full.

use std::path::{Path, PathBuf};

use ::lab::{Info, Lab};
use record::units::{bytes, counted, names};

use crate::console::Stream;
use crate::simulated;

/// Simulated drives, each with how many writes its store had no room for before.
pub(crate) struct Stores {
    lab: Lab,
    drives: Vec<(Info, u64)>,
}

impl Stores {
    /// Watches the drives that paths are on.
    pub(crate) fn under(paths: &[PathBuf]) -> Stores {
        let lab = simulated::here();
        let drives = simulated::drives_of(&lab, paths);
        Stores::with(lab, drives)
    }

    /// Watches the drives that devices of `/dev` are.
    pub(crate) fn of<'a>(devices: impl Iterator<Item = &'a str>) -> Stores {
        let lab = simulated::here();
        let drive = |name: &str| lab.of_device(&Path::new("/dev").join(name)).ok().flatten();
        let drives = devices.filter_map(drive).collect();
        Stores::with(lab, drives)
    }

    fn with(lab: Lab, drives: Vec<Info>) -> Stores {
        let refused = |info: Info| {
            let stats = lab.stats(&info.spec.name).ok()?;
            Some((info, stats.no_room))
        };
        Stores {
            drives: drives.into_iter().filter_map(refused).collect(),
            lab,
        }
    }

    /// Prints for each drive whose store has filled up since which store that is, and the next step.
    /// `command`: the command that worked on the drives.
    pub(crate) fn report(&self, command: &str) {
        for (info, before) in &self.drives {
            let now = self.lab.stats(&info.spec.name).map(|stats| stats.no_room);
            if let Ok(now) = now
                && now > *before
            {
                let said = sentence(info, now - before);
                Stream::Err.print(&format!("trimbench {command}: {said}\n"));
            }
        }
    }
}

fn sentence(info: &Info, refused: u64) -> String {
    let spec = &info.spec;
    let store = spec
        .store
        .as_ref()
        .map_or("in memory".to_owned(), names::shown);
    let next = match (&spec.store, spec.store_limit_bytes.map(bytes)) {
        (_, Some(limit)) => {
            format!("its limit is {limit}; make the drive with a larger store-limit")
        }
        (Some(_), None) => "free space on its file system, or make the drive with `--store` on \
             another one"
            .to_owned(),
        (None, None) => "make the drive with `--store FILE`".to_owned(),
    };
    let (name, writes) = (&spec.name, counted(refused, "write"));
    let verb = if refused == 1 { "was" } else { "were" };
    format!(
        "the store of the drive {name} of `trimbench lab` ({store}) is full, and {writes} to the drive \
         {verb} refused: {next}"
    )
}

#[cfg(test)]
mod tests {
    use ::lab::Spec;

    use super::*;

    #[test]
    fn names_the_store_and_the_next_step() {
        let ideal = ssd::profiles::by_name("ideal").unwrap();
        let mut info = Info {
            spec: Spec::new("a", ideal, 1 << 30),
            device: None,
            mounts: Vec::new(),
            server: None,
            trip: None,
        };
        info.spec.store_limit_bytes = Some(64 << 20);
        assert_eq!(
            sentence(&info, 1),
            "the store of the drive a of `trimbench lab` (in memory) is full, and 1 write to the \
             drive was refused: its limit is 64.0 MiB; make the drive with a larger store-limit"
        );
        info.spec.store = Some("/data/a".into());
        info.spec.store_limit_bytes = None;
        let said = sentence(&info, 2);
        assert!(said.contains("(/data/a) is full, and 2 writes"), "{said}");
        assert!(said.ends_with("`--store` on another one"), "{said}");
    }
}
