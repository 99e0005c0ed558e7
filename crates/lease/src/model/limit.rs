//! The rules for one limit.

use std::collections::BTreeMap;
use std::time::Duration;

use quota::{Ask, Loan, MAX_AMOUNT, Reply, USED_MODULUS};

use super::{Call, Mark};

/// The data of a limit in a store.
#[derive(Clone, Debug, Default)]
pub(super) struct Limit {
    life: u64,
    level: u64,
    /// The part of a unit that flows off next, in 60,000ths.
    rest: u64,
    /// The time up to which `level` has flowed off.
    at: u64,
    /// The event that has to be one lease ago before all loans are known again.
    quarantine: u64,
    replicas: BTreeMap<u64, Share>,
}

#[derive(Clone, Debug)]
struct Share {
    held: u64,
    used: u64,
    seq: u64,
    incarnation: u64,
    /// The event with which the lease began.
    renewed: u64,
    /// The amount that waiting requests still lack.
    short: u64,
}

impl Limit {
    /// Answers an ask. Also returns true if the other replicas have to know: something may be idle with
    /// them for which this one waits, or it has given back something for which they wait.
    pub(super) fn exchange(&mut self, ask: &Ask, call: &Call, mark: &Mark) -> (Reply, bool) {
        self.heed(mark);
        self.flow(mark.flowed, ask.loan.per_minute());
        self.expire(mark, &ask.loan);
        let returned = match self.is_stale(ask, call, mark) {
            true => None,
            false => self.enter(ask, call.replica, mark),
        };
        self.recover(mark, &ask.loan);
        self.reply(ask, call, mark, returned)
    }

    /// Returns true if nothing has to be known of the limit.
    pub(super) fn is_empty(&self, mark: &Mark) -> bool {
        self.replicas.is_empty() && self.level == 0 && !self.is_quarantined(mark)
    }

    /// Lowers event numbers that are ahead of the mark to its latest event: if only the mark was
    /// lost, events and time have started over.
    fn heed(&mut self, mark: &Mark) {
        if self.life != mark.life {
            self.quarantine = self.quarantine.min(mark.event);
            for share in self.replicas.values_mut() {
                share.renewed = share.renewed.min(mark.event);
            }
        }
    }

    /// Returns true while more may be lent than is known. Until then only rates are lent, and claims of
    /// unknown replicas are believed.
    fn is_quarantined(&self, mark: &Mark) -> bool {
        mark.over < mark.born.max(self.quarantine)
    }

    /// Ends a quarantine. A budget then has at least the level that its replicas know; a bucket keeps
    /// its own, which has no more than one bucket too little.
    fn recover(&mut self, mark: &Mark, loan: &Loan) {
        if self.life == mark.life || self.is_quarantined(mark) {
            return;
        }
        self.life = mark.life;
        self.quarantine = 0;
        if let Loan::Budget { accounted, .. } = *loan {
            self.level = self.level.max(accounted);
        }
    }

    /// Starts a quarantine of this limit: its data was lost, but not the data of other limits.
    fn doubt(&mut self, mark: &Mark) {
        if !self.is_quarantined(mark) {
            self.life = 0;
            self.quarantine = mark.event;
        }
    }

    /// Lets the due amount flow off.
    fn flow(&mut self, at: u64, per_minute: u64) {
        let elapsed = at.saturating_sub(self.at);
        self.at = at;
        let whole = (per_minute / MINUTE).saturating_mul(elapsed);
        let parts = (per_minute % MINUTE)
            .saturating_mul(elapsed)
            .saturating_add(self.rest);
        match self.level.checked_sub(whole.saturating_add(parts / MINUTE)) {
            Some(level @ 1..) => {
                self.level = level;
                self.rest = parts % MINUTE;
            }
            Some(0) | None => {
                self.level = 0;
                self.rest = 0;
            }
        }
    }

    /// Forgets the replicas whose lease is over. Amounts that they may have spent count as spent.
    fn expire(&mut self, mark: &Mark, loan: &Loan) {
        let mut spent = 0;
        self.replicas.retain(|_, share| {
            let over = share.renewed <= mark.over;
            spent += if over { share.held } else { 0 };
            !over
        });
        if loan.is_spent() {
            self.level = (self.level + spent).min(MAX_AMOUNT);
        }
    }

    /// Returns true if the lease that an ask continues is over, so that the ask has been on its way
    /// for a long time: it could undo later asks. The first ask of an incarnation continues no
    /// lease.
    fn is_stale(&self, ask: &Ask, call: &Call, mark: &Mark) -> bool {
        if ask.acked == 0 {
            return false;
        }
        let is_of_life = call.proof.life == mark.life;
        let lease = call.lease + call.lease / 10;
        if is_of_life && call.proof.at.saturating_add(lease) < mark.at {
            return true;
        }
        // Once a life has lent anything, all leases of earlier ones are over. Within a life, the
        // spending of each replica is known until its lease is over.
        let is_forgotten = ask.loan.is_spent() && !self.replicas.contains_key(&call.replica);
        self.life == mark.life && (!is_of_life || is_forgotten)
    }

    /// Enters the claim and the spending of the asking replica, and returns the amount that it has
    /// given back. If this ask or a later one was answered already, it changes nothing and returns
    /// `None`.
    fn enter(&mut self, ask: &Ask, replica: u64, mark: &Mark) -> Option<u64> {
        let known = self.replicas.remove(&replica);
        let late = known.as_ref().is_some_and(|known| ask.seq <= known.seq);
        let (mut share, spent) = match known {
            Some(known) if late || known.incarnation == ask.incarnation => {
                let spent = difference(ask.used, known.used);
                (known, spent)
            }
            other => {
                let burned = other.map_or(0, |before| before.held);
                if ask.loan.is_spent() {
                    self.level = (self.level + burned).min(MAX_AMOUNT);
                }
                (Share::new(ask), ask.unacked.cast_signed())
            }
        };
        let mut returned = None;
        if !late {
            self.level = self.level.saturating_add_signed(spent).min(MAX_AMOUNT);
            let kept = share.held.saturating_add_signed(-spent);
            if ask.claim > kept {
                self.doubt(mark);
            }
            returned = Some(kept.saturating_sub(ask.claim));
            share.held = ask.claim;
            share.used = ask.used;
            share.seq = ask.seq;
            share.renewed = mark.event;
        }
        self.replicas.insert(replica, share);
        returned
    }

    /// Lends the amount that the ask wants, if there is as much, and forgets a replica that has no
    /// part in the limit any more.
    fn reply(
        &mut self,
        ask: &Ask,
        call: &Call,
        mark: &Mark,
        returned: Option<u64>,
    ) -> (Reply, bool) {
        let quarantined = self.is_quarantined(mark) && !ask.loan.is_rate();
        let replicas = self.replicas.len() as u64;
        let waits =
            |(replica, share): &(&u64, &Share)| **replica != call.replica && share.short > 0;
        let hungry = self.replicas.iter().filter(waits).count() as u64;
        let held: u64 = self.replicas.values().map(|share| share.held).sum();
        let mut free = match quarantined {
            true => 0,
            false => ask.loan.capacity().saturating_sub(self.level + held),
        };
        let known = self.replicas.remove(&call.replica);
        let is_known = known.is_some();
        let mut share = known.unwrap_or(Share::new(ask));
        let mut noticed = false;
        if let Some(returned) = returned {
            let elsewhere = held > share.held;
            let lent = lend(ask, free, replicas, hungry);
            free -= lent;
            share.held += lent;
            let waited = share.short > 0;
            share.short = ask.need.saturating_sub(lent);
            // One notice for each wait: two replicas that both wait would otherwise make each other ask in turn.
            let waits_for_others = share.short > 0 && !waited && elsewhere;
            let gives_to_others = hungry > 0 && free > 0 && returned > 0;
            noticed = !quarantined && (waits_for_others || gives_to_others);
        }
        let reply = Reply {
            seq: share.seq,
            held: share.held,
            free,
            level: self.level,
            replicas,
            hungry,
            quarantined,
            lease: Duration::from_millis(call.lease),
        };
        let has_part = match returned {
            None => is_known,
            Some(_) => ask.loan.is_spent() || share.held > 0 || share.short > 0,
        };
        if has_part {
            self.replicas.insert(call.replica, share);
        }
        (reply, noticed)
    }
}

impl Share {
    /// Begins an incarnation.
    fn new(ask: &Ask) -> Self {
        Self {
            held: 0,
            used: 0,
            seq: 0,
            incarnation: ask.incarnation,
            renewed: 0,
            short: 0,
        }
    }
}

/// Returns the amount to lend for an ask.
fn lend(ask: &Ask, free: u64, replicas: u64, hungry: u64) -> u64 {
    if free < ask.least {
        return 0;
    }
    let part = free / (2 * replicas);
    // The limit for amounts that are asked for in advance, not for requests that wait.
    let fair = match ask.loan {
        _ if hungry > 0 => 0,
        Loan::Permits { .. } => free,
        Loan::Bucket { per_minute, .. } => part.min(per_minute / ALLOWANCES),
        Loan::Budget { .. } => part,
    };
    free.min(ask.need.max(ask.more.min(fair)))
}

/// Returns `used - before`; both are counted modulo [`USED_MODULUS`].
fn difference(used: u64, before: u64) -> i64 {
    const HALF: i64 = (USED_MODULUS / 2) as i64;
    let difference = (used % USED_MODULUS) as i64 - (before % USED_MODULUS) as i64;
    if difference < -HALF {
        difference + 2 * HALF
    } else if difference >= HALF {
        difference - 2 * HALF
    } else {
        difference
    }
}

/// Milliseconds in a minute.
const MINUTE: u64 = 60_000;
/// Half seconds in a minute: the most that is lent in advance.
const ALLOWANCES: u64 = 120;
