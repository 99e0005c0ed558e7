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

/// Plays every case at once: most of the time of those who wait for a limit is waiting.
fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, play: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let play = &play;
            scope.spawn(move || play(case));
        }
    });
}
