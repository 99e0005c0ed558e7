//! Server-sent events without I/O: a decoder and an encoder that follow the WHATWG rules
