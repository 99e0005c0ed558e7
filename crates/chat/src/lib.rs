//! The Chat Completions protocol: types, validators, stream grammar and fold; no I/O
