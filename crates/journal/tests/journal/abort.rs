//! The first failed write or flush ends the journal, for good and for everybody.
