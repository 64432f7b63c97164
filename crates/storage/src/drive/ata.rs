//! The report of an ATA drive about TRIM (ACS-4, IDENTIFY DEVICE).

use serde::Serialize;

use super::le16;
use super::nvme::ReadsAs;

/// The content of IDENTIFY DEVICE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ata {
    /// Model, words 27 to 46.
    pub model: String,
    /// Firmware, words 23 to 26.
    pub firmware: String,
    /// Whether DATA SET MANAGEMENT with TRIM is there (word 169, bit 0).
    pub trim: bool,
    /// Most blocks of 512 bytes with ranges in one TRIM (word 105); 0: not reported. Linux sends
    /// one.
    pub max_payload_blocks: u16,
    /// The content of trimmed sectors (word 69, bits 14 and 5).
    pub reads_as: ReadsAs,
    /// Whether the drive takes commands such as TRIM through its queue (word 77, bit 6).
    pub queued: bool,
}

impl Ata {
    /// From the 512 bytes of the page. `None` where it is shorter, or all zeros or ones.
    pub fn parse(page: &[u8]) -> Option<Ata> {
        if page.len() < 512 || page.iter().all(|&byte| byte == page[0]) {
            return None;
        }
        let word = |number: usize| le16(page, number * 2);
        let is_set = |number: usize, bit: u32| word(number) >> bit & 1 == 1;
        Some(Ata {
            model: text(page, 27, 46),
            firmware: text(page, 23, 26),
            trim: is_set(169, 0),
            max_payload_blocks: word(105),
            reads_as: match (is_set(69, 14), is_set(69, 5)) {
                (true, true) => ReadsAs::Zeros,
                (true, false) => ReadsAs::Deterministic,
                _ => ReadsAs::Anything,
            },
            queued: word(77) != 0xffff && is_set(77, 6),
        })
    }

    /// From the words that `/sys/class/ata_device/devN.M/id` prints in hexadecimal.
    pub fn parse_words(text: &str) -> Option<Ata> {
        let words: Option<Vec<u16>> = text
            .split_whitespace()
            .map(|word| u16::from_str_radix(word, 16).ok())
            .collect();
        let page: Vec<u8> = words?.into_iter().flat_map(u16::to_le_bytes).collect();
        Ata::parse(&page)
    }
}

/// Text in words whose first character is the upper byte.
fn text(page: &[u8], first: usize, last: usize) -> String {
    let bytes: Vec<u8> = (first..=last)
        .flat_map(|word| le16(page, word * 2).to_be_bytes())
        .collect();
    String::from_utf8_lossy(&bytes)
        .trim_matches(['\0', ' '])
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &[(usize, u16)]) -> Vec<u8> {
        let mut page = vec![0; 512];
        for (number, word) in words {
            page[number * 2..number * 2 + 2].copy_from_slice(&word.to_le_bytes());
        }
        page
    }

    #[test]
    fn a_drive_that_promises_zeros() {
        let words = [
            (27, 0x5361),
            (28, 0x6d73),
            (69, 0x4020),
            (77, 0x40),
            (105, 8),
            (169, 1),
        ];
        let found = Ata::parse(&page(&words)).unwrap();
        assert!(found.trim && found.queued);
        assert_eq!(
            (found.model.as_str(), found.max_payload_blocks),
            ("Sams", 8)
        );
        assert_eq!(found.reads_as, ReadsAs::Zeros);
    }

    #[test]
    fn the_words_of_sys_and_pages_that_are_none() {
        let line = "0000 0000 0000 0000 0000 0000 0000 0000\n".repeat(31) + &"0000 ".repeat(8);
        assert_eq!(Ata::parse_words(&line), None, "all zeros");
        let mut words = vec!["0000"; 256];
        words[169] = "0001";
        let found = Ata::parse_words(&words.join(" ")).unwrap();
        assert!(found.trim && found.reads_as == ReadsAs::Anything);
        assert_eq!(Ata::parse_words("zz"), None);
        assert_eq!(Ata::parse(&[1; 511]), None);
    }
}
