//! Pages, read-ahead, write-back and dirty throttling.
