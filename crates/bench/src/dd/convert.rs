//! The conversions between input and output blocks.

use super::operands::Operands;
use super::tables;
use super::words::Conv;

/// The byte for each byte.
struct Table([u8; 256]);

impl Table {
    fn identity() -> Table {
        Table(std::array::from_fn(|i| i as u8))
    }

    fn to_ebcdic() -> Table {
        let mut table = Table::identity();
        for (byte, pair) in table.0.iter_mut().zip(tables::TO_EBCDIC.as_bytes().chunks(2)) {
            let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0) as u8;
            *byte = digit(pair[0]) << 4 | digit(pair[1]);
        }
        table
    }

    fn to_ibm() -> Table {
        let mut table = Table::to_ebcdic();
        tables::IBM.iter().for_each(|(ascii, byte)| table.0[usize::from(*ascii)] = *byte);
        table
    }

    fn from_ebcdic() -> Table {
        let mut table = Table::identity();
        (0..=255).zip(Table::to_ebcdic().0).for_each(|(ascii, b)| table.0[usize::from(b)] = ascii);
        table
    }

    fn then(&mut self, f: impl Fn(u8) -> u8) {
        self.0.iter_mut().for_each(|b| *b = f(*b));
    }
}

/// Turns what was read into what is to be written, block by block.
pub(super) struct Converter {
    conv: Conv,
    table: Option<Table>,
    newline: u8,
    space: u8,
    cbs: usize,
    /// Bytes of the present line or record.
    column: usize,
    /// Spaces of a record that are only written if something follows.
    spaces: usize,
    /// A byte whose partner has not come yet.
    odd: Option<u8>,
    /// Lines that were longer than a record.
    pub(super) truncated: u64,
}

impl Converter {
    pub(super) fn new(operands: &Operands) -> Converter {
        let conv = operands.conv;
        let mut table = match conv.contains(Conv::ASCII) {
            true => Table::from_ebcdic(),
            false => Table::identity(),
        };
        if conv.contains(Conv::UCASE) {
            table.then(|b| b.to_ascii_uppercase());
        }
        if conv.contains(Conv::LCASE) {
            table.then(|b| b.to_ascii_lowercase());
        }
        let (mut newline, mut space) = (b'\n', b' ');
        let to = match () {
            () if conv.contains(Conv::EBCDIC) => Some(Table::to_ebcdic()),
            () if conv.contains(Conv::IBM) => Some(Table::to_ibm()),
            () => None,
        };
        if let Some(to) = to {
            table.then(|b| to.0[usize::from(b)]);
            newline = to.0[usize::from(b'\n')];
            space = to.0[usize::from(b' ')];
        }
        let translates = table.0 != Table::identity().0;
        Converter {
            conv,
            table: translates.then_some(table),
            newline,
            space,
            cbs: operands.cbs,
            column: 0,
            spaces: 0,
            odd: None,
            truncated: 0,
        }
    }

    /// Converts a block that was read.
    pub(super) fn block(&mut self, data: &mut [u8]) -> Vec<u8> {
        if let Some(table) = &self.table {
            data.iter_mut().for_each(|b| *b = table.0[usize::from(*b)]);
        }
        if self.conv.contains(Conv::SWAB) {
            let swapped = self.swapped(data);
            return self.formed(&swapped);
        }
        self.formed(data)
    }

    /// What is left at the end of the input.
    pub(super) fn end(&mut self) -> Vec<u8> {
        let mut out = match self.odd.take() {
            Some(byte) => self.formed(&[byte]),
            None => Vec::new(),
        };
        if self.conv.contains(Conv::BLOCK) && self.column > 0 {
            out.resize(out.len() + self.cbs.saturating_sub(self.column), self.space);
        }
        if self.conv.contains(Conv::UNBLOCK) && self.column > 0 {
            out.push(self.newline);
        }
        out
    }

    fn swapped(&mut self, data: &[u8]) -> Vec<u8> {
        let mut bytes = self.odd.take().into_iter().chain(data.iter().copied());
        let mut out = Vec::with_capacity(data.len() + 1);
        while let Some(first) = bytes.next() {
            match bytes.next() {
                Some(second) => out.extend([second, first]),
                None => self.odd = Some(first),
            }
        }
        out
    }

    fn formed(&mut self, data: &[u8]) -> Vec<u8> {
        if self.conv.contains(Conv::BLOCK) {
            self.blocked(data)
        } else if self.conv.contains(Conv::UNBLOCK) {
            self.unblocked(data)
        } else {
            data.to_vec()
        }
    }

    /// Lines into records.
    fn blocked(&mut self, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(data.len());
        for byte in data {
            if *byte == self.newline {
                out.resize(out.len() + self.cbs.saturating_sub(self.column), self.space);
                self.column = 0;
                continue;
            }
            if self.column == self.cbs {
                self.truncated += 1;
            } else if self.column < self.cbs {
                out.push(*byte);
            }
            self.column += 1;
        }
        out
    }

    /// Records into lines.
    fn unblocked(&mut self, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(data.len() + data.len() / self.cbs.max(1) + 1);
        for byte in data {
            if self.column >= self.cbs {
                (self.column, self.spaces) = (0, 0);
                out.push(self.newline);
            }
            self.column += 1;
            if *byte == self.space {
                self.spaces += 1;
            } else {
                out.resize(out.len() + std::mem::take(&mut self.spaces), self.space);
                out.push(*byte);
            }
        }
        out
    }
}
