//! Lines of a text of any size, without an allocation for each.

use std::io::{self, BufRead};

use crate::prefix::{DOCKER, Prefix, unwrapped};

/// A longer line is none that any of our programs prints.
const LONGEST: usize = 1 << 20;

/// Bytes that are enough to tell what follows.
const PEEK: usize = 512;

/// Bytes at the begin that show what stands before each line.
const LOOK: usize = 64 << 10;

/// Bytes asked for at a time.
const CHUNK: usize = 256 << 10;

/// Hands out one line after the other from a buffer of its own, without colours and without
/// what another program put before each.
pub(crate) struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    /// Where the rest of the buffer begins that hasn't been handed out yet.
    begin: usize,
    end: usize,
    /// Number of the line handed out last, from 1.
    number: u64,
    at_end: bool,
    /// Whether what comes next is the rest of a line that is too long to be kept.
    in_long_line: bool,
    /// `None` until the begin was looked at.
    prefix: Option<Option<Prefix>>,
    /// A line without its colours or docker's JSON, or with its end.
    line: Vec<u8>,
}

/// Lines that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// How many.
    pub lines: u64,
    /// Number of the first, from 1.
    pub first: u64,
}

impl Left {
    pub(crate) fn add(&mut self, number: u64) {
        if self.lines == 0 {
            self.first = number;
        }
        self.lines += 1;
    }
}

/// One line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextLine<'a> {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// The text that another program put before it.
    pub(crate) prefix: &'a [u8],
    /// Its bytes. Of one longer than 1 MiB, the first.
    pub(crate) bytes: &'a [u8],
    /// Whether a line end followed; a text that was cut off lacks its last.
    pub(crate) ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(from: R) -> Self {
        Lines {
            from,
            buffer: vec![0; CHUNK],
            begin: 0,
            end: 0,
            number: 0,
            at_end: false,
            in_long_line: false,
            prefix: None,
            line: Vec::new(),
        }
    }

    /// How many lines were handed out.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes after the lines handed out: a few hundred at least, if there are so many.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        self.look()?;
        self.have(PEEK)?;
        let mut bytes = &self.buffer[self.begin..self.end];
        if bytes.starts_with(DOCKER) {
            let mut plain = Vec::new();
            for line in bytes[..bytes.len().min(PEEK)].split(|&b| b == b'\n') {
                unwrapped(line, &mut self.line);
                plain.extend_from_slice(&self.line);
            }
            self.line = plain;
            bytes = &self.line;
        }
        let split = self.prefix.iter().flatten().find_map(|p| p.split(bytes));
        Ok(split.map_or(bytes, |(_, rest)| rest))
    }

    /// Makes sure that so many bytes are there, or all.
    fn have(&mut self, bytes: usize) -> io::Result<()> {
        while self.end - self.begin < bytes && !self.at_end {
            self.fill()?;
        }
        Ok(())
    }

    /// Looks at the begin of the text, once.
    fn look(&mut self) -> io::Result<()> {
        if self.prefix.is_none() {
            self.have(LOOK)?;
            let begin = &self.buffer[self.begin..self.end];
            self.prefix = Some(Prefix::of(&begin[..begin.len().min(LOOK)]));
        }
        Ok(())
    }

    /// All of what is there in one piece, whatever its lines; empty at the end. For texts
    /// whose lines may be of any length. Of a text with a prefix, one line and its end.
    pub(crate) fn chunk(&mut self) -> io::Result<&[u8]> {
        self.look()?;
        if self.prefix.iter().flatten().next().is_some() {
            let Some(line) = self.next()? else {
                return Ok(&[]);
            };
            let line = [line.bytes, b"\n"].concat();
            self.line = line;
            return Ok(&self.line);
        }
        if self.begin == self.end && !self.at_end {
            self.fill()?;
        }
        let chunk = self.begin..self.end;
        self.begin = self.end;
        self.number += memchr::memchr_iter(b'\n', &self.buffer[chunk.clone()]).count() as u64;
        Ok(&self.buffer[chunk])
    }

    /// The next line; `None` at the end of the text.
    pub(crate) fn next(&mut self) -> io::Result<Option<TextLine<'_>>> {
        self.look()?;
        while std::mem::take(&mut self.in_long_line) {
            let end = memchr::memchr(b'\n', &self.buffer[self.begin..self.end]);
            self.begin = end.map_or(self.end, |at| self.begin + at + 1);
            if end.is_none() && !self.at_end {
                self.in_long_line = true;
                self.fill()?;
            }
        }
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.begin..self.end];
            if let Some(at) = memchr::memchr(b'\n', &unread[searched..]) {
                let line = self.begin..self.begin + searched + at;
                self.begin = line.end + 1;
                return Ok(Some(self.hand_out(line, true)));
            }
            searched = unread.len();
            if self.at_end {
                if unread.is_empty() {
                    return Ok(None);
                }
                let line = self.begin..self.end;
                self.begin = self.end;
                return Ok(Some(self.hand_out(line, false)));
            }
            if searched > LONGEST {
                let line = self.begin..self.begin + LONGEST;
                self.begin = self.end;
                self.in_long_line = true;
                return Ok(Some(self.hand_out(line, true)));
            }
            self.fill()?;
        }
    }

    fn hand_out(&mut self, line: std::ops::Range<usize>, ended: bool) -> TextLine<'_> {
        self.number += 1;
        let mut bytes = &self.buffer[line];
        while let Some(rest) = bytes.strip_suffix(b"\r") {
            bytes = rest;
        }
        if memchr::memchr(0x1b, bytes).is_some() || bytes.starts_with(DOCKER) {
            unwrapped(bytes, &mut self.line);
            bytes = &self.line;
        }
        let split = self.prefix.iter().flatten().find_map(|p| p.split(bytes));
        let (prefix, bytes) = split.unwrap_or((&[], bytes));
        TextLine {
            number: self.number,
            prefix,
            bytes,
            ended,
        }
    }

    /// Reads on; what is unread moves to the buffer's begin first.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.buffer.len() - self.end < CHUNK / 2 {
            self.buffer.resize(self.buffer.len() + CHUNK, 0);
        }
        let got = self.from.read(&mut self.buffer[self.end..]);
        match got {
            Ok(0) => self.at_end = true,
            Ok(bytes) => self.end += bytes,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn read(text: &[u8], chunk: usize) -> Vec<(u64, Vec<u8>, bool)> {
        let mut lines = Lines::new(BufReader::with_capacity(chunk, text));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.bytes.to_vec(), line.ended));
        }
        all
    }

    #[test]
    fn lines_come_whole_and_counted() {
        for chunk in [1, 2, 3, 64] {
            let all = read(b"one\r\n\nthree\nfour", chunk);
            let texts: Vec<&[u8]> = all.iter().map(|l| l.1.as_slice()).collect();
            assert_eq!(texts, [&b"one"[..], b"", b"three", b"four"]);
            assert_eq!(all[3].0, 4);
            assert!(all[2].2 && !all[3].2, "only the last lacks its end");
        }
        assert!(read(b"", 8).is_empty());
    }

    #[test]
    fn long_texts_are_read_through_a_small_buffer() {
        let line = "x".repeat(1000) + "\n";
        let text = line.repeat(2000);
        let all = read(text.as_bytes(), 8192);
        assert_eq!(all.len(), 2000);
        assert!(all.iter().all(|l| l.1.len() == 1000));
    }

    #[test]
    fn an_absurd_line_is_cut_and_the_next_is_whole() {
        let text = "a\n".to_owned() + &"y".repeat(5 << 20) + "\nb\n";
        let all = read(text.as_bytes(), 8192);
        assert_eq!(all.len(), 3);
        assert_eq!(all[1].1.len(), LONGEST);
        assert_eq!((all[2].0, all[2].1.as_slice()), (3, &b"b"[..]));
    }
}
