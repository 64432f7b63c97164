//! The image stores of container engines, where space that isn't back soon does harm.
//!
//! When 85 % of the file system is used, the kubelet removes images until 80 % is
//! (`imageGCHighThresholdPercent`, `imageGCLowThresholdPercent`). It evicts pods where less than 15 % is
//! available (`imagefs.available`); both are its documented defaults. Space that a second name keeps
//! looks used to it.

use std::path::{Path, PathBuf};

use super::GuardError;

/// The largest share of the file system that may wait there.
const MOST: f64 = 0.02;

/// Names that are together in the root of a store, and in no other directory.
const STORES: [(&str, &[&str]); 3] = [
    ("containerd", &["io.containerd.metadata.v1.bolt"]),
    ("Docker", &["image", "overlay2"]),
    ("Podman or CRI-O", &["overlay-images", "overlay-layers"]),
];

/// Where the engines have their stores by default.
const DEFAULTS: [&str; 3] = [
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/containers/storage",
];

/// Refuses a directory of a store where more than [`MOST`] may wait.
pub(super) fn refuse(directory: &Path, most: f64) -> Result<(), GuardError> {
    // One that isn't there is refused later.
    let path = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    match found(&path) {
        Some((engine, store)) if most > MOST => Err(GuardError::ImageStore {
            path,
            engine,
            store,
        }),
        _ => Ok(()),
    }
}

/// The engine whose store a directory is, is in, or holds, and where that store is. Of stores below
/// a directory, only those in the engines' default places are found.
fn found(directory: &Path) -> Option<(&'static str, PathBuf)> {
    let below = DEFAULTS.iter().map(Path::new);
    let below = below.filter(|store| store.starts_with(directory));
    directory.ancestors().chain(below).find_map(|root| {
        let holds = |names: &[&str]| names.iter().all(|name| root.join(name).exists());
        let (engine, _) = STORES.iter().find(|(_, names)| holds(names))?;
        Some((*engine, root.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_store_is_known_by_what_is_in_it_from_every_directory_of_it() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path();
        assert_eq!(found(here), None);
        fs::create_dir_all(here.join("overlay2/layer")).unwrap();
        assert_eq!(found(here), None, "a directory of that name alone is none");
        fs::create_dir(here.join("image")).unwrap();
        let expected = Some(("Docker", here.to_owned()));
        assert_eq!(found(here), expected);
        assert_eq!(found(&here.join("overlay2/layer")), expected);
    }
}
