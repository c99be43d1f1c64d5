//! Strict JSON: what could be read in two ways is refused (duplicate keys, lone surrogates, trailing
//! data), and whatever is refused is named by position or by field.

mod decode;
mod scan;

pub(crate) use decode::{decode, decode_borrowed, escaped};
pub(crate) use scan::check;
