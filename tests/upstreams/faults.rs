//! Upstream faults, and the responses that clients get then: each test is named after its row of
//! the fault list.
//!
//! | rows | where |
//! |---|---|
//! | S1–S15 | `reading` |
//! | S16 | `matrix`; every sequence of events: the property tests of `crates/translate` |
//! | U1, U2, U5–U18, U20–U22, C8 | `failing` |
//! | U3, U4 (names, TLS) | `crates/upstream`, `connecting`: they need a test resolver and test certificates |
//! | U8 at every offset | `offsets` |
//! | U19, C1–C4, C6 | `leaving` |
//! | C5 (embedded engines) | `tests/black_box`, `limits` and `images` |
//! | C7 (a panic) | `crates/server`, the tests of `body/events`; every test counts panics |
//! | targets, retry, circuit breaker, fallback | `targets` |

mod failing;
mod leaving;
mod offsets;
mod reading;
mod targets;

use grammar::{End, Judged as _};
use testkit::upstreams::{FaultTest, Outcome, PATIENT, lanes};

use crate::GATEWAY;

/// Accepts a complete reply or a proper failure, where the operating system decides: a reset may
/// discard data that was received just before.
#[track_caller]
fn is_whole_or_fails(got: &Outcome) {
    let is_whole = got.response.status == 200
        && matches!(
            grammar::stream(got.lane.client, &got.response),
            End::Reply(_)
        );
    if is_whole {
        got.is_whole();
    } else {
        got.fails_at_once_or_later();
    }
}

/// Plays a scenario for a stream on each lane.
fn streams(name: &str, check: impl Fn(&Outcome) + Sync) {
    FaultTest::named(GATEWAY, name, PATIENT)
        .each(&lanes(), true, check)
        .end();
}

/// Plays a scenario for a plain reply on each lane.
fn plainly(name: &str, check: impl Fn(&Outcome) + Sync) {
    FaultTest::named(GATEWAY, name, PATIENT)
        .each(&lanes(), false, check)
        .end();
}

/// Runs every case in parallel: cases that wait for a timeout spend most of their time waiting.
fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, play: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let play = &play;
            scope.spawn(move || play(case));
        }
    });
}
