//! H: requests that are not framed as HTTP asks.

use simulator::{Protocol, Simulator, honest};

use crate::house::House;
use crate::question::ask;
use crate::{client::Connection, house};

/// A gateway before an honest server.
fn honest_house() -> (House, Simulator) {
    let simulator = Simulator::start(honest::answer).unwrap();
    (House::before(&simulator, "their-model", "", ""), simulator)
}

#[test]
fn h13_a_request_may_come_in_any_two_pieces() {
    let (house, _simulator) = honest_house();
    let bytes = house::request(Protocol::Chat, &ask(Protocol::Chat, "chat", "Hello.", false)).bytes();
    let whole = {
        let mut connection = Connection::open(house.address());
        connection.send(&bytes);
        connection.response()
    };
    assert_eq!(whole.status, 200);
    for cut in 1..bytes.len() {
        let mut connection = Connection::open(house.address());
        connection.send(&bytes[..cut]);
        connection.send(&bytes[cut..]);
        let response = connection.response();
        assert_eq!((response.status, response.body.len()), (200, whole.body.len()), "cut at {cut}");
    }
}
