//! Model servers that refuse what the real ones refuse, and the requests of clients for them. The servers are
//! written from the vendors' pages, and not from the gateway's rules.

mod draws;
mod servers;

pub use self::draws::request;
pub use self::servers::{SERVERS, Server};
