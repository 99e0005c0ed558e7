//! What the endpoints tell differently.

use translate::relay::RelayProtocol;
use wire::ApiError;

use crate::outcome::Ending;

/// How the answers of an endpoint are told.
pub(crate) trait Manner: 'static {
    /// One thing that a model does.
    type Event: Send;
    /// What is known of an answer when a model begins it.
    type Traits: Send;
    /// What tells of a failure while nothing is known yet.
    type Waiting: Send;
    /// What tells of the doings of a model.
    type Teller: Send;
    /// What reads along when an upstream is let speak.
    type Relay: RelayProtocol + Unpin;
    /// A whole reply of an upstream.
    type Whole: Send;

    /// A model begins to answer: what opens the stream goes out at once.
    fn open(waiting: Self::Waiting, settled: Self::Traits, out: &mut Vec<u8>) -> Self::Teller;

    /// Tells one thing that the model does, and how the answer ended when it was the last.
    fn tell(teller: &mut Self::Teller, event: Self::Event, out: &mut Vec<u8>) -> Option<Ending>;

    /// Tells the failure that ends the stream.
    fn fail(teller: &mut Self::Teller, error: &ApiError, out: &mut Vec<u8>);

    /// Tells the failure of an answer that did not begin.
    fn fail_waiting(waiting: &mut Self::Waiting, error: &ApiError, out: &mut Vec<u8>);

    /// Tells that a silent stream is open.
    fn keep_alive(teller: &Self::Teller, out: &mut Vec<u8>);
}
