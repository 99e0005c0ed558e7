//! Property tests of keys, with arbitrary client input.

mod credentials;
mod keys;
mod patterns;
