//! The character tables of POSIX's dd. That of `conv=ascii` is the inverse of `conv=ebcdic`'s.

/// ASCII to EBCDIC (`conv=ebcdic`), as hexadecimal digits: the byte for each byte from 0 on.
pub(super) const TO_EBCDIC: &str = "\
    00010203372d2e2f1605250b0c0d0e0f\
    101112133c3d322618193f271c1d1e1f\
    405a7f7b5b6c507d4d5d5c4e6b604b61\
    f0f1f2f3f4f5f6f7f8f97a5e4c7e6e6f\
    7cc1c2c3c4c5c6c7c8c9d1d2d3d4d5d6\
    d7d8d9e2e3e4e5e6e7e8e9ade0bd9a6d\
    79818283848586878889919293949596\
    979899a2a3a4a5a6a7a8a9c04fd05f07\
    202122232415061728292a2b2c090a1b\
    30311a333435360838393a3b04143ee1\
    41424344454647484951525354555657\
    58596263646566676869707172737475\
    767778808a8b8c8d8e8f906a9b9c9d9e\
    9fa0aaabac4aaeafb0b1b2b3b4b5b6b7\
    b8b9babbbca1bebfcacbcccdcecfdadb\
    dcdddedfeaebecedeeeffafbfcfdfeff";

/// Where the other EBCDIC (`conv=ibm`), which has brackets and a circumflex, differs: ASCII, byte.
pub(super) const IBM: [(u8, u8); 5] =
    [(0x5e, 0x5f), (0x7e, 0xa1), (0xcb, 0x9a), (0xd5, 0xad), (0xe5, 0xbd)];
