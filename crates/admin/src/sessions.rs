//! The sessions of the console, in memory: a restart ends all of them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use auth::{Key, KeyHash};
use policy::clock;

/// The sessions, and the one-time tokens by which one can begin without the admin key.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    /// Oldest first.
    sessions: VecDeque<Session>,
    tokens: Vec<KeyHash>,
}

/// A session. Only the hash of its secret is kept.
#[derive(Debug)]
struct Session {
    secret: KeyHash,
    /// Its end, in Unix seconds.
    expires: i64,
}

/// The proof of a sign-in.
#[derive(Clone, Copy)]
pub(crate) enum Credential<'a> {
    /// The admin key.
    Key(&'a str),
    /// A one-time token.
    Token(&'a str),
}

impl Sessions {
    /// Creates a one-time token, which begins one session.
    pub fn issue_token(&self) -> Key {
        let token = random();
        self.lock().tokens.push(KeyHash::of(&token));
        token
    }

    /// Begins a session with a one-time token, which is used up by that.
    pub(crate) fn redeem(&self, token: &str) -> Option<Key> {
        let presented = hash(token)?;
        {
            let mut open = self.lock();
            let at = open.tokens.iter().position(|token| *token == presented)?;
            open.tokens.swap_remove(at);
        }
        Some(self.begin())
    }

    /// Begins a session. The oldest one ends if there are too many.
    pub(crate) fn begin(&self) -> Key {
        let secret = random();
        let lifetime = i64::try_from(LIFETIME.as_secs()).unwrap_or(i64::MAX);
        let session = Session {
            secret: KeyHash::of(&secret),
            expires: clock::unix_seconds().saturating_add(lifetime),
        };
        let mut open = self.lock();
        if open.sessions.len() == MAX_SESSIONS {
            open.sessions.pop_front();
        }
        open.sessions.push_back(session);
        secret
    }

    /// The end of the session with this secret, in Unix seconds, if it goes on.
    pub(crate) fn find(&self, secret: &str) -> Option<i64> {
        let presented = hash(secret)?;
        let now = clock::unix_seconds();
        let mut open = self.lock();
        open.sessions.retain(|session| session.expires > now);
        let found = open
            .sessions
            .iter()
            .find(|session| session.secret == presented);
        found.map(|session| session.expires)
    }

    /// Ends the session with this secret.
    pub(crate) fn end(&self, secret: &str) {
        if let Some(presented) = hash(secret) {
            let mut open = self.lock();
            open.sessions.retain(|session| session.secret != presented);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // No step of a change panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A secret of 256 bits: the value of a session's cookie, or a one-time token.
fn random() -> Key {
    let mut bits = [0; 32];
    let halves = [clock::random_bits(), clock::random_bits()];
    for (to, half) in bits.chunks_mut(16).zip(halves) {
        to.copy_from_slice(&half.to_be_bytes());
    }
    Key::from_bits(bits)
}

fn hash(secret: &str) -> Option<KeyHash> {
    Key::parse(secret).ok().as_ref().map(KeyHash::of)
}

/// The name of the cookie.
pub(crate) const COOKIE: &str = "sluicegate_session";
/// The time for which a session lasts.
pub(crate) const LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// The number of sessions at the same time.
const MAX_SESSIONS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_begins_one_session() {
        let sessions = Sessions::default();
        let token = sessions.issue_token();
        assert!(sessions.redeem("another").is_none());
        let session = sessions.redeem(token.expose()).unwrap();
        assert!(sessions.redeem(token.expose()).is_none());
        assert!(sessions.find(session.expose()).is_some());
        assert!(sessions.find(token.expose()).is_none());
        sessions.end(session.expose());
        assert!(sessions.find(session.expose()).is_none());
    }

    #[test]
    fn the_oldest_session_ends_when_there_are_too_many() {
        let sessions = Sessions::default();
        let all: Vec<_> = (0..=MAX_SESSIONS).map(|_| sessions.begin()).collect();
        let is_open = |at: usize| sessions.find(all[at].expose()).is_some();
        assert!(!is_open(0));
        assert!(is_open(1) && is_open(MAX_SESSIONS));
    }
}
