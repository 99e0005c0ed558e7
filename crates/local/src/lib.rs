//! The embedded text engine: a small language model on the CPU with constrained output
