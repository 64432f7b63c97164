//! The image stores of container engines, where space that isn't back soon does harm.
//!
//! The kubelet removes images until 5 % of the file system is free again (`imageGCHighThresholdPercent`
//! 85, `imageGCLowThresholdPercent` 80, the defaults of Kubernetes 1.36). It evicts pods where less
//! than 15 % is available (`imagefs.available`). Space that a second name keeps looks used to it.

use std::path::{Path, PathBuf};

/// The largest share of the file system that may wait there.
pub(super) const MOST: f64 = 0.02;

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

/// The engine whose store a directory is, is in, or holds, and where that store is. Of stores below
/// a directory, only those in the engines' default places are found.
pub(super) fn found(directory: &Path) -> Option<(&'static str, PathBuf)> {
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
