//! The laws of keys, over whatever a caller may send.

mod credentials;
mod keys;
mod patterns;
