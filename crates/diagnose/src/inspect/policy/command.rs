//! Which file systems a command line trims.

use std::path::Path;

use linux::SysRoot;
use linux::mounts::Mount;
use storage::trimmable::{FSTAB, MOUNTED, select_in};

use super::shell;

/// A program that trims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Fstrim,
    Ours,
    /// ZFS's own.
    Zpool,
}

/// A command that trims, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    arguments: Vec<String>,
    pub(super) program: Program,
    /// Whether some of its arguments aren't known.
    unknown: bool,
}

/// The name of the program that trims mounts; ours ends with it.
pub(super) const FSTRIM: &str = "fstrim";

/// Scripts are short.
const SCRIPT_BYTES: u64 = 64 << 10;

impl Command {
    /// Those in a line or a script, and in the scripts that it starts.
    pub(super) fn all(sys: &SysRoot, text: &str) -> Vec<Command> {
        let mut found = Vec::new();
        for words in shell::commands(text) {
            match Command::of(&words) {
                Some(command) => found.push(command),
                None => found.extend(scripts(sys, &words).iter().flat_map(|script| {
                    let own = shell::commands(script);
                    own.iter().filter_map(Command::of).collect::<Vec<_>>()
                })),
            }
        }
        found
    }

    fn of(words: &shell::Words) -> Option<Command> {
        let name = |word: &Option<Vec<String>>| -> Option<String> {
            let only = word.as_ref()?.first()?;
            let only = only.trim_start_matches(['-', '@', '+', '!', ':']);
            Some(Path::new(only).file_name()?.to_str()?.to_owned())
        };
        let names: Vec<Option<String>> = words.iter().map(name).collect();
        let is = |at: usize, wanted: &str| {
            names
                .get(at)
                .is_some_and(|one| one.as_deref() == Some(wanted))
        };
        let path = |at: usize, wanted: &str| {
            let word = words[at].as_ref().and_then(|all| all.first());
            word.is_some_and(|word| word.ends_with(wanted))
        };
        // What a test of a file names is not run.
        let tested = |at: usize| at > 0 && is(at - 1, "x");
        let (at, program) = (0..words.len()).find_map(|at| match () {
            () if tested(at) || is(at.wrapping_sub(1), "echo") => None,
            () if is(at, "fstrim") && at > 0 && is(at - 1, "trimbench") => {
                Some((at, Program::Ours))
            }
            () if is(at, "fstrim") || is(at, "fstrim-all") => Some((at, Program::Fstrim)),
            () if is(at, "btrfs-trim.sh") => Some((at, Program::Fstrim)),
            () if is(at, "trim") && at > 0 && is(at - 1, "zpool") => Some((at, Program::Zpool)),
            () if path(at, "zfs-linux/trim") => Some((at, Program::Zpool)),
            () => None,
        })?;
        let end = |word: &&Option<Vec<String>>| {
            let first = word.as_ref().and_then(|all| all.first());
            first.is_none_or(|first| !first.contains(['>', '<']))
        };
        let rest: Vec<_> = words[at + 1..].iter().take_while(end).collect();
        let mut arguments: Vec<String> = rest
            .iter()
            .filter_map(|one| (*one).clone())
            .flatten()
            .collect();
        if is(at, "fstrim-all") || is(at, "btrfs-trim.sh") {
            arguments = vec!["--all".to_owned()];
        }
        let fed = (0..at).any(|at| is(at, "xargs") || is(at, "parallel"));
        Some(Command {
            arguments,
            program,
            unknown: fed || rest.iter().any(|one| one.is_none()),
        })
    }

    /// Its name; of ZFS's own with the pools that it names.
    pub(super) fn name(&self) -> String {
        match self.program {
            Program::Fstrim => FSTRIM.to_owned(),
            Program::Ours => "trimbench fstrim".to_owned(),
            Program::Zpool => {
                let words = ["zpool trim"].into_iter().chain(self.named());
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Its arguments but for options.
    fn named(&self) -> impl Iterator<Item = &str> {
        let words = self.arguments.iter().map(String::as_str);
        words.filter(|one| !one.starts_with('-'))
    }

    /// The pools of ZFS that it trims: those with a mount, and those that it names.
    fn pools(&self, mounts: &[Mount]) -> Vec<String> {
        let named: Vec<&str> = self.named().collect();
        let is_named = |mount: &Mount| {
            mount
                .source
                .split('/')
                .next()
                .is_some_and(|pool| named.contains(&pool))
        };
        let zfs = mounts.iter().filter(|mount| mount.fs == "zfs");
        let own = zfs.filter(|mount| named.is_empty() || is_named(mount));
        own.map(|mount| mount.mount_point.to_string_lossy().into_owned())
            .collect()
    }

    /// The mount points that it trims on this machine; `None` where it names some in a way that only
    /// a shell knows.
    pub(super) fn covers(&self, sys: &SysRoot, mounts: &[Mount]) -> Option<Vec<String>> {
        match self.program {
            Program::Zpool => Some(self.pools(mounts)),
            _ if self.unknown => None,
            _ => self.mounts(sys, mounts),
        }
    }
}

/// The texts of the scripts that a command starts.
fn scripts(sys: &SysRoot, words: &shell::Words) -> Vec<String> {
    let script = |word: &Option<Vec<String>>| {
        let path = word
            .as_ref()?
            .first()?
            .trim_start_matches(['-', '@', '+', '!', ':']);
        if !path.starts_with('/') || path.ends_with('/') {
            return None;
        }
        let file = std::fs::metadata(sys.path(path)).ok()?;
        if !file.is_file() || file.len() > SCRIPT_BYTES {
            return None;
        }
        sys.text(path).ok().filter(|text| text.starts_with("#!"))
    };
    words.iter().filter_map(script).collect()
}

impl Command {
    /// The mount points that `fstrim` trims with these arguments; `None` where one is no plain path,
    /// such as the `{}` of `find`.
    fn mounts(&self, sys: &SysRoot, mounts: &[Mount]) -> Option<Vec<String>> {
        let mut files = None;
        let mut types = None;
        let mut named = Vec::new();
        let mut words = self.arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name, Some(value)),
                _ => (word, None),
            };
            match name {
                "--all" => files = Some(MOUNTED),
                "--fstab" => files = Some(FSTAB),
                "-I" | "--listed-in" => files = value.or_else(|| words.next()),
                "-t" | "--types" => types = value.or_else(|| words.next()),
                "-o" | "-l" | "-m" | "--offset" | "--length" | "--minimum" | "--slowdown"
                | "--max-latency" | "--deadline" | "--profile" | "--set" | "--json" => {
                    if value.is_none() {
                        words.next();
                    }
                }
                // Short options in one word.
                _ if name.starts_with('-') && !name.starts_with("--") => {
                    if name.contains('a') {
                        files = Some(MOUNTED);
                    }
                    if name.contains('A') {
                        files = Some(FSTAB);
                    }
                }
                _ if name.starts_with('-') => {}
                _ => named.push(name.to_owned()),
            }
        }
        match files {
            Some(files) => {
                let selected = select_in(sys, mounts, files, types).unwrap_or_default();
                let path =
                    |one: storage::trimmable::Selected| one.path.to_string_lossy().into_owned();
                Some(selected.into_iter().map(path).collect())
            }
            None => {
                let plain =
                    |one: &String| one.starts_with('/') && !one.contains(['*', '?', '[', '{']);
                named.iter().all(plain).then_some(named)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Machine;

    /// Commands of a machine without scripts.
    fn find(line: &str) -> Option<Command> {
        let nowhere = tempfile::tempdir().unwrap();
        Command::all(&SysRoot::at(nowhere.path()), line)
            .into_iter()
            .next()
    }

    #[test]
    fn commands_are_found_in_lines() {
        let ours = find("ExecStart=/usr/bin/trimbench fstrim --all --slowdown 5%%").unwrap();
        assert_eq!(ours.program, Program::Ours);
        assert_eq!(
            find("0 3 * * 0 root /sbin/fstrim -av > /dev/null")
                .unwrap()
                .arguments,
            ["-av"]
        );
        assert_eq!(find("-/sbin/fstrim / && echo").unwrap().arguments, ["/"]);
        let looped = find("5 4 * * 6 root for m in /a /b; do ionice -c3 fstrim $m; sleep 60; done");
        assert_eq!(looped.unwrap().arguments, ["/a", "/b"]);
        for none in [
            "# fstrim -a",
            "echo no",
            "/usr/bin/fstrimmer /",
            "echo fstrim",
        ] {
            assert_eq!(find(none), None, "{none}");
        }
    }

    #[test]
    fn zfs_and_scripts_are_known() {
        let mounts = "1 0 0:50 / /tank rw - zfs tank rw\n2 0 0:51 / /b rw - zfs other/b rw\n";
        let machine = Machine::new(mounts);
        machine.write(
            "usr/local/sbin/weekly",
            "#!/bin/sh\nD=\"/ /var\"\nfor m in $D; do\n  fstrim $m\ndone\n",
        );
        let sys = SysRoot::at(machine.root());
        let mounts = linux::mounts::list(&sys).unwrap();
        let covers = |line: &str| {
            let all = Command::all(&sys, line);
            let all: Option<Vec<_>> = all.iter().map(|one| one.covers(&sys, &mounts)).collect();
            all.map(|all| all.concat())
        };
        assert_eq!(
            covers("10 0 * * 5 /usr/sbin/zpool trim other").unwrap(),
            ["/b"]
        );
        let debian = "24 0 1-7 * * root [ -x /usr/lib/zfs-linux/trim ] && /usr/lib/zfs-linux/trim";
        assert_eq!(covers(debian).unwrap(), ["/tank", "/b"]);
        assert_eq!(
            covers("0 1 * * 0 root /usr/local/sbin/weekly").unwrap(),
            ["/", "/var"]
        );
        assert_eq!(covers("@daily root fstrim $(cat /etc/trim)"), None);
    }

    #[test]
    fn what_it_covers_depends_on_the_tables() {
        let mounts = "1 0 259:0 / / rw - ext4 /dev/nvme0n1 rw\n\
                      2 1 259:1 / /data rw - xfs /dev/nvme1n1 rw\n";
        let machine = Machine::new(mounts);
        machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(1 << 30));
        machine.device("pci/nvme/nvme1/nvme1n1", "259:1", Some(1 << 30));
        machine.write("etc/fstab", "/dev/nvme0n1 / ext4 defaults 0 1\n");
        let sys = SysRoot::at(machine.root());
        let mounts = linux::mounts::list(&sys).unwrap();
        let covers = |line: &str| Command::all(&sys, line)[0].covers(&sys, &mounts).unwrap();
        assert_eq!(
            covers("fstrim --listed-in /etc/fstab:/proc/self/mountinfo --verbose"),
            ["/"]
        );
        assert_eq!(covers("fstrim -Av"), ["/"]);
        assert_eq!(covers("fstrim --all"), ["/", "/data"]);
        assert_eq!(covers("fstrim -a -t xfs"), ["/data"]);
        assert_eq!(covers("fstrim -v -m 1M /mnt"), ["/mnt"]);
        assert_eq!(covers("trimbench fstrim --fstab --slowdown 5%"), ["/"]);
    }
}
