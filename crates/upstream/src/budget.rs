//! The retry budget: retries are a share of the requests, so that they cannot make an overload worse.

/// A bucket of tokens. Every request puts a tenth of one in, every retry takes a whole one out.
#[derive(Debug)]
pub struct Budget {
    /// In tenths of a token.
    level: u32,
}

impl Budget {
    /// A full bucket: the first failures of a quiet hour are retried, too.
    #[must_use]
    pub const fn new() -> Self {
        Self { level: CAPACITY }
    }

    /// A request was made.
    pub fn deposit(&mut self) {
        self.level = (self.level + 1).min(CAPACITY);
    }

    /// Takes the token for a retry, if there is one.
    #[must_use]
    pub fn withdraw(&mut self) -> bool {
        let has_one = self.level >= TOKEN;
        if has_one {
            self.level -= TOKEN;
        }
        has_one
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

/// One retry for so many requests.
const TOKEN: u32 = 10;
/// Ten retries can be saved up.
const CAPACITY: u32 = 10 * TOKEN;
