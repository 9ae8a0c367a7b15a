//! Numbers, texts and bytes to and from a file. Little-endian; what varies in length has its
//! length before it. Reading believes nothing: a length beyond the end is an error, and nothing is
//! allocated before its bytes are known to be there.

use bytes::Bytes;

/// What does not make sense, in words.
pub(super) type Result<T> = std::result::Result<T, String>;

/// Writes a section's bytes.
#[derive(Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn flag(&mut self, value: bool) {
        self.byte(value.into());
    }

    pub fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn wide(&mut self, value: u128) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A number for what may be missing: one more than its value, or 0.
    pub fn maybe(&mut self, value: Option<u64>) {
        self.number(value.map_or(0, |v| v.saturating_add(1)));
    }
}

/// Reads a section's bytes.
pub(super) struct Reader(pub Bytes);

impl Reader {
    fn take(&mut self, len: usize) -> Result<Bytes> {
        if len > self.0.len() {
            return Err(format!("it ends {} bytes too early", len - self.0.len()));
        }
        Ok(self.0.split_to(len))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(&self.take(N)?);
        Ok(out)
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn flag(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("neither yes nor no but {other}")),
        }
    }

    pub fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn wide(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub fn maybe(&mut self) -> Result<Option<u64>> {
        Ok(self.number()?.checked_sub(1))
    }

    pub fn bytes(&mut self) -> Result<Bytes> {
        let len = self.number()?;
        self.take(usize::try_from(len).map_err(|_| format!("a length of {len} bytes"))?)
    }

    pub fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.into()).map_err(|_| "a text that is not UTF-8".into())
    }

    /// A count of things that take `least` bytes each at least: no more than fit.
    pub fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.number()?;
        let most = self.0.len() / least.max(1);
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= most)
            .ok_or_else(|| format!("{count} items in {} bytes", self.0.len()))
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<()> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(format!("{more} bytes too many")),
        }
    }
}
