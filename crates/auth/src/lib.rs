//! API keys: bearer parsing, hashes, scopes, expiry, a key ring; no I/O
