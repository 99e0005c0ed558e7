#![doc = include_str!("../README.md")]

// Work that takes too long for the threads of the connections.
pub mod long_work;

// The state of a client connection, its timers, and the bodies of its requests.
pub mod connection;

// Requests whose responses are made after their clients have left.
mod background;

// The record, the refusal, the answer and the body of one request.
pub mod exchange;

// The state that all requests share.
pub mod state;

// The steps that a request passes, shared by all endpoints.
pub mod request;

// The endpoints of the protocols.
pub mod endpoints;

// The path of one request from its head to its response. Read this first.
pub mod service;

// Lets web pages call the API.
pub mod cors;

// A gateway with scripted engines, for tests.
#[cfg(any(test, feature = "test-util"))]
pub mod testing;

#[cfg(test)]
mod memory;
