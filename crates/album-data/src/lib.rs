//! Bytes in, checked arrays out.
