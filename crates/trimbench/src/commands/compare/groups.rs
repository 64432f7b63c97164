//! Which files belong together: `--group NAME=FILE FILE… NAME=FILE…`.

use std::path::PathBuf;

use record::units::names;

use crate::exit::{Error, usage};
use crate::input::stem;

/// A group's name and its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) files: Vec<PathBuf>,
}

/// Makes a group of each file. Its name is the shortest part of its path that differs from the
/// others.
pub(super) fn singles(files: &[PathBuf]) -> Result<Vec<Named>, Error> {
    for file in files {
        let word = file.to_string_lossy();
        if named(&word).is_some() && !file.exists() {
            let all: Vec<String> = files.iter().map(names::shown).collect();
            let (file, all) = (names::shown(file), all.join(" "));
            return Err(usage(format!(
                "{file}: no such file. Name groups with --group: trimbench compare --group {all}"
            )));
        }
    }
    let names: Vec<String> = files.iter().map(|file| stem(file)).collect();
    let distinct = |i: usize| names.iter().filter(|name| **name == names[i]).count() == 1;
    let all = files.iter().enumerate().map(|(i, file)| Named {
        name: match distinct(i) {
            true => names[i].clone(),
            false => names::shown(file),
        },
        files: vec![file.clone()],
    });
    enough(all.collect())
}

/// The groups that `--group`'s words name.
pub(super) fn parse(words: &[String]) -> Result<Vec<Named>, Error> {
    let mut groups: Vec<Named> = Vec::new();
    let mut current = None;
    for word in words {
        let (name, file) = match named(word) {
            Some((name, file)) => (Some(name), file),
            None => (None, word.as_str()),
        };
        if let Some(name) = name {
            let known = groups.iter().position(|group| group.name == name);
            current = Some(known.unwrap_or_else(|| {
                groups.push(Named {
                    name: name.to_owned(),
                    files: Vec::new(),
                });
                groups.len() - 1
            }));
        }
        let Some(group) = current else {
            return Err(usage(format!(
                "--group {word}: say which group it belongs to, e.g. --group before={word}"
            )));
        };
        groups[group].files.extend(expanded(file)?);
    }
    for group in &groups {
        for (i, file) in group.files.iter().enumerate() {
            if group.files[..i].contains(file) {
                let (file, name) = (names::shown(file), &group.name);
                return Err(usage(format!(
                    "{file}: is in group '{name}' twice; a repeat is another run"
                )));
            }
        }
    }
    enough(groups)
}

/// `NAME=FILE`; a name has no slash, so that `./a=b` is a file.
fn named(word: &str) -> Option<(&str, &str)> {
    let (name, file) = word.split_once('=')?;
    (!name.is_empty() && !name.contains('/')).then_some((name, file))
}

/// The files that a pattern stands for, sorted. A file of that very name is itself.
fn expanded(pattern: &str) -> Result<Vec<PathBuf>, Error> {
    let path = PathBuf::from(pattern);
    let is_pattern = pattern.contains(['*', '?', '[']);
    if !is_pattern || path.exists() {
        return Ok(vec![path]);
    }
    let wrong = |why: String| usage(format!("--group: '{pattern}': {why}"));
    let all = glob::glob(pattern).map_err(|e| wrong(format!("is not a pattern: {}", e.msg)))?;
    let files: Result<Vec<PathBuf>, _> = all.collect();
    let files = files.map_err(|error| wrong(error.to_string()))?;
    if files.is_empty() {
        return Err(wrong("no file matches it".into()));
    }
    Ok(files)
}

fn enough(groups: Vec<Named>) -> Result<Vec<Named>, Error> {
    if groups.len() < 2 {
        return Err(usage(
            "there is nothing to compare with: give at least two runs, or two groups, e.g. \
             --group before=a.jsonl after=b.jsonl",
        ));
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parsed(words: &[&str]) -> Result<Vec<(String, Vec<String>)>, String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let groups = parse(&words).map_err(|e| e.to_string())?;
        let shown = |group: Named| {
            let files = group.files.iter().map(|f| f.display().to_string());
            (group.name, files.collect())
        };
        Ok(groups.into_iter().map(shown).collect())
    }

    #[test]
    fn files_belong_to_the_name_before_them() {
        let group = |name: &str, files: &[&str]| {
            let files = files.iter().map(|f| (*f).to_owned()).collect();
            (name.to_owned(), files)
        };
        assert_eq!(
            parsed(&["a=1", "2", "./x=3", "b=4", "a=5"]).unwrap(),
            [group("a", &["1", "2", "./x=3", "5"]), group("b", &["4"])]
        );
        // As a shell expands a={1,2}: each with its name.
        assert_eq!(
            parsed(&["a=1", "a=2", "b=x=y"]).unwrap(),
            [group("a", &["1", "2"]), group("b", &["x=y"])]
        );
        for (words, said) in [
            (&["1", "a=2"][..], "before=1"),
            (&["a=1"], "two groups"),
            (&["a=1", "b=2", "a=1"], "twice"),
            (&["a=/nowhere-at-all-*", "b=2"], "no file matches"),
            (&["a=[", "b=2"], "not a pattern"),
        ] {
            let error = parsed(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_single_run_is_called_by_what_tells_it_from_the_others() {
        let names = |files: &[&str]| -> Vec<String> {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            let all = singles(&files).unwrap().into_iter();
            all.map(|group| group.name).collect()
        };
        assert_eq!(names(&["x/a.jsonl", "y/b.jsonl.zst"]), ["a", "b"]);
        assert_eq!(
            names(&["x/a.jsonl", "y/a.jsonl"]),
            ["x/a.jsonl", "y/a.jsonl"]
        );
        assert_eq!(names(&["-", ".zst"]), ["-", ".zst"]);
        let named = [
            PathBuf::from("host1=a.jsonl"),
            PathBuf::from("host2=b.jsonl"),
        ];
        let error = singles(&named).unwrap_err().to_string();
        assert!(
            error.ends_with("--group host1=a.jsonl host2=b.jsonl"),
            "{error}"
        );
    }
}
