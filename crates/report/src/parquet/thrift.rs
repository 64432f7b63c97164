//! Thrift's compact protocol, as far as Parquet's footer needs it.

/// Types of fields and of list elements.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure in the making; its fields come in rising order.
#[derive(Debug, Clone, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    pub(super) fn new() -> Struct {
        Struct::default()
    }

    /// Begins a field, by its distance from the one before: 1 to 15.
    fn field(&mut self, id: u8, kind: u8) {
        debug_assert!(id > self.last && id - self.last < 16);
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    pub(super) fn i32(mut self, id: u8, value: i32) -> Struct {
        self.field(id, I32);
        zigzag(&mut self.bytes, value.into());
        self
    }

    pub(super) fn i64(mut self, id: u8, value: i64) -> Struct {
        self.field(id, I64);
        zigzag(&mut self.bytes, value);
        self
    }

    pub(super) fn text(mut self, id: u8, value: &str) -> Struct {
        self.field(id, BINARY);
        binary(&mut self.bytes, value);
        self
    }

    pub(super) fn structure(mut self, id: u8, value: Struct) -> Struct {
        self.field(id, STRUCT);
        self.bytes.extend(value.end());
        self
    }

    fn list(&mut self, id: u8, kind: u8, len: usize) {
        self.field(id, LIST);
        match u8::try_from(len) {
            Ok(len) if len < 15 => self.bytes.push(len << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, len as u64);
            }
        }
    }

    pub(super) fn i32s(mut self, id: u8, values: &[i32]) -> Struct {
        self.list(id, I32, values.len());
        for &value in values {
            zigzag(&mut self.bytes, value.into());
        }
        self
    }

    pub(super) fn texts(mut self, id: u8, values: &[&str]) -> Struct {
        self.list(id, BINARY, values.len());
        for value in values {
            binary(&mut self.bytes, value);
        }
        self
    }

    pub(super) fn structs(mut self, id: u8, values: Vec<Struct>) -> Struct {
        self.list(id, STRUCT, values.len());
        for value in values {
            self.bytes.extend(value.end());
        }
        self
    }

    /// Its bytes, with the stop behind the last field.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(bytes: &mut Vec<u8>, value: &str) {
    varint(bytes, value.len() as u64);
    bytes.extend(value.as_bytes());
}

fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    varint(bytes, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Seven bits a byte, the lowest first.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zigzag_varints_and_long_lists_have_a_long_head() {
        let bytes = Struct::new().i32(1, -1).i64(3, 300).end();
        assert_eq!(bytes, [0x15, 1, 0x26, 0xd8, 0x04, 0]);
        let list = Struct::new().i32s(2, &[0; 20]).end();
        assert_eq!(list[..3], [0x29, 0xf5, 20]);
    }
}
