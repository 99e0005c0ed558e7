#![doc = include_str!("../README.md")]

mod credentials;
mod hash;
mod key;
mod pattern;
mod ring;
mod scope;

pub use credentials::{Credentials, Denied, Malformed};
pub use hash::{KeyHash, KeyHashError};
pub use key::{Key, KeyError, MAX_KEY};
pub use pattern::{Pattern, PatternError};
pub use ring::{Entry, FormerHash, KeyRing, RingErrors, RingProblem};
pub use scope::{Scope, Scopes, UnknownScope};
