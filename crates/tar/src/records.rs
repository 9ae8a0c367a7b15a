//! pax records: `LENGTH KEY=VALUE\n`, where the length counts itself; a value may be any bytes.

use steadfast_vfs::Timestamp;

/// What attributes are called.
pub(crate) const XATTR: &[u8] = b"SCHILY.xattr.";

/// Records in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records(Vec<(Vec<u8>, Vec<u8>)>);

impl Records {
    /// Reads them; what is wrong where they make no sense.
    pub fn parse(mut bytes: &[u8]) -> Result<Records, &'static str> {
        let mut records = Vec::new();
        // Some programs fill up with zeros.
        while bytes.first().is_some_and(|byte| *byte != 0) {
            const WRONG: &str = "a pax record that makes no sense";
            let space = bytes.iter().take(20).position(|byte| *byte == b' ').ok_or(WRONG)?;
            let digits = std::str::from_utf8(&bytes[..space]).ok();
            let len: usize = digits.and_then(|digits| digits.parse().ok()).ok_or(WRONG)?;
            let record = bytes.get(space + 1..len).ok_or(WRONG)?;
            let record = record.strip_suffix(b"\n").ok_or(WRONG)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or(WRONG)?;
            records.push((record[..equals].to_vec(), record[equals + 1..].to_vec()));
            bytes = &bytes[len..];
        }
        Ok(Records(records))
    }

    /// The last value of a key; none where it is empty, which takes an earlier one back.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        let found = self.0.iter().rev().find(|(k, _)| k == key.as_bytes());
        found.map(|(_, value)| value.as_slice()).filter(|value| !value.is_empty())
    }

    /// A number.
    pub fn number(&self, key: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = std::str::from_utf8(value).ok();
        match text.and_then(|text| text.parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("its {key} is no number")),
        }
    }

    /// A time.
    pub fn time(&self, key: &str) -> Result<Option<Timestamp>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        time(value).map(Some).ok_or_else(|| format!("its {key} is no time"))
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// These, and over them others.
    pub fn joined(&self, over: &Records) -> Records {
        Records(self.0.iter().chain(&over.0).cloned().collect())
    }

    /// Attributes; of one that is there twice the last.
    pub fn xattrs(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (key, value) in self.iter() {
            let Some(name) = key.strip_prefix(XATTR) else { continue };
            let name = decoded(name);
            all.retain(|(there, _)| *there != name);
            all.push((name, value.to_vec()));
        }
        all
    }

    /// Adds one.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.0.push((key.to_vec(), value.to_vec()));
    }

    /// Adds an attribute.
    pub fn push_xattr(&mut self, name: &[u8], value: &[u8]) {
        self.push(&[XATTR, &encoded(name)].concat(), value);
    }

    /// Adds a time.
    pub fn push_time(&mut self, key: &str, at: Timestamp) {
        let whole = i128::from(at.secs) * 1_000_000_000 + i128::from(at.nanos);
        let sign = if whole < 0 { "-" } else { "" };
        let (secs, nanos) = (whole.abs() / 1_000_000_000, whole.abs() % 1_000_000_000);
        let text = match nanos {
            0 => format!("{sign}{secs}"),
            _ => format!("{sign}{secs}.{nanos:09}").trim_end_matches('0').to_owned(),
        };
        self.push(key.as_bytes(), text.as_bytes());
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in self.iter() {
            let rest = key.len() + value.len() + 3;
            let digits = |n: usize| n.to_string().len();
            let mut len = rest + digits(rest);
            len = rest + digits(len);
            bytes.extend_from_slice(len.to_string().as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(key);
            bytes.push(b'=');
            bytes.extend_from_slice(value);
            bytes.push(b'\n');
        }
        bytes
    }
}

/// A key holds no `=`; GNU tar writes those of a name as `%3D`.
fn encoded(name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'%' => key.extend_from_slice(b"%25"),
            b'=' => key.extend_from_slice(b"%3D"),
            other => key.push(*other),
        }
    }
    key
}

fn decoded(mut key: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(key.len());
    while let Some((first, rest)) = key.split_first() {
        let (byte, rest) = match (first, rest.get(..2)) {
            (b'%', Some(b"25")) => (b'%', &rest[2..]),
            (b'%', Some(b"3D")) => (b'=', &rest[2..]),
            _ => (*first, rest),
        };
        name.push(byte);
        key = rest;
    }
    name
}

/// Seconds with a fraction, which may be negative: rounded down to nanoseconds.
fn time(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (secs, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !secs.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.get(..fraction.len().min(9))?;
    let nanos: i128 = format!("{digits:0<9}").parse().ok()?;
    let whole = i128::from(secs.parse::<i64>().ok()?) * 1_000_000_000 + nanos;
    let whole = if negative { -whole } else { whole };
    Some(Timestamp {
        secs: i64::try_from(whole.div_euclid(1_000_000_000)).ok()?,
        nanos: u32::try_from(whole.rem_euclid(1_000_000_000)).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        let mut records = Records::default();
        records.push_xattr(b"user.a=b%c", b"1\n2=3\0\xff");
        records.push_time("mtime", Timestamp { secs: -2, nanos: 500_000_000 });
        records.push(b"path", &[b'x'; 9_990]);
        let read = Records::parse(&records.to_bytes()).unwrap();
        assert_eq!(read.xattrs(), [(b"user.a=b%c".to_vec(), b"1\n2=3\0\xff".to_vec())]);
        assert_eq!(read.get("mtime"), Some(&b"-1.5"[..]));
        assert_eq!(read.time("mtime"), Ok(Some(Timestamp { secs: -2, nanos: 500_000_000 })));
        assert_eq!(read.get("path").map(<[u8]>::len), Some(9_990));
    }

    #[test]
    fn a_length_counts_its_own_digits() {
        for len in 1..1200 {
            let mut records = Records::default();
            records.push(b"k", &vec![b'v'; len]);
            assert_eq!(Records::parse(&records.to_bytes()).unwrap().get("k").unwrap().len(), len);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [&b"x"[..], b"5 a=b\n", b"99 a=b\n", b"6 a=bc", b"7 abcd\n", b"0 a=b\n", b"1 "] {
            assert!(Records::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "1.x", "--1", "99999999999999999999", "1e3"] {
            assert_eq!(time(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(time(b"1.25"), Some(Timestamp { secs: 1, nanos: 250_000_000 }));
    }
}
