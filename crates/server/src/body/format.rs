//! The endpoint-specific part of writing a streamed answer.

use translate::relay::RelayProtocol;
use wire::ApiError;

use crate::outcome::Ending;

/// The stream format of an endpoint's answers.
pub(crate) trait Manner: 'static {
    /// A neutral event of a model.
    type Event: Send;
    /// Facts about an answer that are known when a model starts it.
    type Traits: Send;
    /// The state before the answer starts, which can write a failure.
    type Waiting: Send;
    /// The encoder of a model's events.
    type Teller: Send;
    /// The protocol that checks a relayed stream.
    type Relay: RelayProtocol + Unpin;
    /// A unary reply of an upstream.
    type Whole: Send;

    /// Starts the answer of a model, and writes the events that open the stream.
    fn open(waiting: Self::Waiting, settled: Self::Traits, out: &mut Vec<u8>) -> Self::Teller;

    /// Writes an event of the model; returns how the answer ended if it was the last one.
    fn tell(teller: &mut Self::Teller, event: Self::Event, out: &mut Vec<u8>) -> Option<Ending>;

    /// Writes the failure that ends the stream.
    fn fail(teller: &mut Self::Teller, error: &ApiError, out: &mut Vec<u8>);

    /// Writes the failure of an answer that has not started.
    fn fail_waiting(waiting: &mut Self::Waiting, error: &ApiError, out: &mut Vec<u8>);

    /// Writes a keep-alive.
    fn keep_alive(teller: &Self::Teller, out: &mut Vec<u8>);
}
