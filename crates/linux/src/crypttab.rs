//! The table of encrypted devices that are opened at the start: `/etc/crypttab`.

/// A line of the table (crypttab(5)): `home UUID=… none luks,discard`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The number of its line, from 1.
    pub line: usize,
    /// The name that the device mapper gives the opened device.
    pub name: String,
    /// The encrypted device, as the line names it.
    pub device: String,
    /// The file of the key, or a word such as `none`.
    pub key: String,
    /// Its options.
    pub options: Vec<String>,
}

impl Entry {
    /// Whether discards may pass once the device is opened. The programs of systemd and of Debian know
    /// `discard`, and systemd's knows `allow-discards` too.
    pub fn allows_discards(&self) -> bool {
        self.options
            .iter()
            .any(|option| option == "discard" || option == "allow-discards")
    }

    /// The line with `discard` added to its options.
    pub fn with_discard(&self) -> String {
        let mut options = self.options.clone();
        options.push("discard".to_owned());
        let options = options.join(",");
        [&self.name, &self.device, &self.key, &options]
            .map(String::as_str)
            .join(" ")
    }
}

/// The entries of a table.
pub fn parse(text: &str) -> Vec<Entry> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| parse_line(index + 1, line))
        .collect()
}

fn parse_line(number: usize, line: &str) -> Option<Entry> {
    let mut fields = line.split_whitespace();
    let name = fields.next().filter(|name| !name.starts_with('#'))?;
    let device = fields.next()?;
    let key = fields.next().unwrap_or("none");
    let options = fields.next().filter(|options| !options.starts_with('#'));
    let is_option = |option: &&str| {
        !option.is_empty() && !option.starts_with('#') && !matches!(*option, "none" | "-")
    };
    Some(Entry {
        line: number,
        name: name.to_owned(),
        device: device.to_owned(),
        key: key.to_owned(),
        options: options
            .into_iter()
            .flat_map(|options| options.split(','))
            .filter(is_option)
            .map(str::to_owned)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_and_options() {
        let entries = parse(
            "# <name> <device> <key> <options>\n\nroot\tUUID=0a-1b none luks,discard\n\
             home /dev/sdb1 /etc/keys/home luks,x-initrd.attach # a comment\nold /dev/sdc1\nhalf\n",
        );
        let lines: Vec<_> = entries.iter().map(|one| (one.line, &one.name)).collect();
        assert_eq!(
            lines,
            [
                (3, &"root".to_owned()),
                (4, &"home".to_owned()),
                (5, &"old".to_owned())
            ]
        );
        let allow: Vec<bool> = entries.iter().map(Entry::allows_discards).collect();
        assert_eq!(allow, [true, false, false]);
        assert_eq!(
            entries[1].with_discard(),
            "home /dev/sdb1 /etc/keys/home luks,x-initrd.attach,discard"
        );
        assert_eq!(entries[2].with_discard(), "old /dev/sdc1 none discard");
    }

    #[test]
    fn the_line_with_discard_is_read_back() {
        for text in [
            "a b",
            "a b - -",
            "a b c none",
            "a b c luks,,timeout=3",
            "a b c ,#",
        ] {
            let line = parse(text)[0].with_discard();
            assert!(parse(&line)[0].allows_discards(), "{line}");
        }
    }
}
