//! The Responses protocol: types, validators, stream grammar and fold; no I/O
