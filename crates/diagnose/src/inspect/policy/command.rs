//! Which file systems a command line trims.

use std::path::Path;

use linux::SysRoot;
use linux::mounts::Mount;
use storage::trimmable::{FSTAB, MOUNTED, select_in};

/// A command that trims: `fstrim` or `trimbench fstrim`, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    arguments: Vec<String>,
    /// Whether it is trimbench's.
    pub(super) ours: bool,
}

impl Command {
    /// Finds one in a line of a unit, a crontab or a script.
    pub(super) fn find(line: &str) -> Option<Command> {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let is = |word: &str, name: &str| {
            Path::new(word.trim_start_matches(['-', '@', '+', '!', ':', '"', '\'']))
                .file_name()
                .is_some_and(|found| found == name)
        };
        let at = words.iter().position(|word| is(word, "fstrim"))?;
        let end = |word: &&&str| !matches!(**word, ";" | "&&" | "||" | "|") && !word.contains('>');
        Some(Command {
            arguments: words[at + 1..]
                .iter()
                .take_while(end)
                .map(|w| (*w).to_owned())
                .collect(),
            ours: at > 0 && is(words[at - 1], "trimbench"),
        })
    }

    /// The mount points that it trims on this machine.
    pub(super) fn covers(&self, sys: &SysRoot, mounts: &[Mount]) -> Vec<String> {
        let mut files = None;
        let mut types = None;
        let mut named = Vec::new();
        let mut words = self
            .arguments
            .iter()
            .map(|word| word.trim_matches(['"', '\'']));
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
                | "--max-latency" | "--deadline" | "--profile" | "--rate" | "--json" => {
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
                selected.into_iter().map(path).collect()
            }
            None => named,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Machine;

    #[test]
    fn commands_are_found_in_lines() {
        let find = Command::find;
        let ours = find("ExecStart=/usr/bin/trimbench fstrim --all --slowdown 5%%").unwrap();
        assert!(ours.ours);
        assert_eq!(
            find("0 3 * * 0 root /sbin/fstrim -av > /dev/null")
                .unwrap()
                .arguments,
            ["-av"]
        );
        assert_eq!(find("-/sbin/fstrim / && echo").unwrap().arguments, ["/"]);
        for none in ["# fstrim -a", "echo no", "/usr/bin/fstrimmer /"] {
            assert_eq!(find(none), None, "{none}");
        }
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
        let covers = |line: &str| Command::find(line).unwrap().covers(&sys, &mounts);
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
