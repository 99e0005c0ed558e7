//! Model protocols to the neutral vocabulary and back, requests and event streams; no I/O
