//! What may go wrong with an upstream, and what clients are owed then: each test is named by its row of the fault list.
//!
//! | rows | where |
//! |---|---|
//! | S1–S15 | `reading` |
//! | S16 | `matrix`; every sequence of events: the reading and hearing laws of `crates/translate` |
//! | U1, U2, U5–U18, U20–U22, C8 | `failing` |
//! | U3, U4 (names, TLS) | `crates/upstream`, `connecting`: they need a resolver and certificates of their own |
//! | U8 at every offset | `offsets` |
//! | U19, C1–C4, C6 | `leaving` |
//! | C5 (work of the gateway's own) | `tests/black_box`, `limits` and `images` |
//! | C7 (a panic) | `crates/server`, the tests of `body/events`; every scene counts them |
//! | targets, retry, breaker, fallback | `targets` |

mod failing;
mod leaving;
mod offsets;
mod reading;
mod targets;

use crate::scene::Got;
use crate::stream::End;
use crate::told;

/// The answer is whole, or it failed properly, when it is for the system to choose: a reset may take with it what was said
/// just before.
#[track_caller]
fn is_whole_or_fails(got: &Got) {
    let is_whole = got.response.status == 200 && matches!(told::stream(got.lane.client, &got.response), End::Reply(_));
    if is_whole { got.is_whole() } else { got.fails_at_once_or_later() }
}

/// Plays every case at once: most of the time of those who wait for a limit is waiting.
fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, play: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let play = &play;
            scope.spawn(move || play(case));
        }
    });
}
