//! Files as each version of trimbench wrote them, in `tests/formats/VERSION/`.

use std::fs;
use std::path::Path;

/// The file of that name of each version.
pub fn all(name: &str) -> Vec<Vec<u8>> {
    let versions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats");
    let folders = fs::read_dir(versions).unwrap().map(|found| found.unwrap());
    let files = folders.flat_map(|version| fs::read_dir(version.path()).unwrap());
    let named = files.map(|found| found.unwrap().path());
    let named = named.filter(|path| path.file_stem().is_some_and(|stem| stem == name));
    let all: Vec<_> = named.map(|path| fs::read(path).unwrap()).collect();
    assert!(!all.is_empty(), "tests/formats has no {name}");
    all
}

/// The same as trimbench 99.0.0 may write it, in a form that this build doesn't know.
pub fn newer(text: &[u8]) -> Vec<u8> {
    let text = str::from_utf8(text).unwrap();
    let version = text
        .split_once("\"version\":\"")
        .unwrap()
        .1
        .split('"')
        .next();
    let newer = text.replacen(version.unwrap(), "99.0.0", 1);
    assert!(newer.contains("/1\""), "{newer}");
    newer.replacen("/1\"", "/9\"", 1).into_bytes()
}
