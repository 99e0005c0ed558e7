//! A simulated world: replicas, a store, and an unreliable network between them.

mod check;
mod faults;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quota::{FailMode, LeasedLimitSpec, LeasedShare, ShareReservation};
use sluicegate_lease::{
    ElapsedProof, ExchangeRequest, ExchangeResponse, ReferenceStore, StoreClock,
};

use crate::random::Random;
use truth::Truth;

/// The time of the world in microseconds.
type Time = u64;

pub(crate) const MILLI: Time = 1_000;
pub(crate) const LEASE: Time = 10_000 * MILLI;
/// A lease request that was not answered in this time has failed.
const TIMEOUT: Time = 100 * MILLI;
/// The clocks of two replicas differ by less than the margin of a lease, which is 2 %.
const MAX_DRIFT_PPM: u64 = 9_000;

/// The plan of one schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) spec: LeasedLimitSpec,
    pub(crate) replicas: usize,
    /// True if requests end before their lease is over; otherwise they go on.
    pub(crate) end_with_lease: bool,
    /// The longest time of a request.
    pub(crate) longest: Time,
    pub(crate) faults: bool,
    /// The chance in percent of a request wherever there can be one.
    pub(crate) pressure: u64,
    /// True if the server's clock is set back and forward by up to an hour.
    pub(crate) clock_is_set: bool,
    /// The time for which requests come.
    pub(crate) busy: Time,
}

pub(crate) struct World {
    random: Random,
    plan: Plan,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    numbered: u64,
    replicas: Vec<Replica>,
    store: Store,
    truth: Truth,
    /// The ends of the requests at the model server, and their numbers. They go on there if their
    /// replica is paused or has died.
    served: BTreeSet<(Time, u64)>,
    pub(crate) counts: Counts,
}

/// Evidence that a schedule has tried something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) steps: u64,
    pub(crate) taken: u64,
    pub(crate) short: u64,
    pub(crate) lost: u64,
    pub(crate) quarantined: u64,
    /// The number of times that the store has lost data.
    pub(crate) losses: u64,
    pub(crate) stalls: u64,
    pub(crate) late: u64,
    pub(crate) noticed: u64,
}

struct Replica {
    id: u64,
    /// Counts the processes in this place; events of earlier ones are dropped.
    process: u64,
    offset: Time,
    drift_ppm: i64,
    share: LeasedShare,
    clock: StoreClock,
    open: Vec<Open>,
    paused_until: Time,
    cut_until: Time,
    /// Messages from and to the replica arrive after this time.
    stalled_until: Time,
}

/// A request that is being served.
struct Open {
    number: u64,
    taken: ShareReservation,
    spends: u64,
}

struct Store {
    model: ReferenceStore,
    /// Earlier states; a failover restores one of them.
    past: Vec<ReferenceStore>,
    server: u64,
    /// The clock of the server at the start of the world.
    server_clock_ms: Time,
    stopped_until: Time,
}

enum Event {
    Wake(usize, u64),
    Arrive(usize, u64, ExchangeRequest),
    Answered(usize, u64, ExchangeResponse),
    Timeout(usize, u64, u64),
    Notice(usize, u64),
    End(usize, u64, u64),
    /// The lease of a replica may be over.
    Deadline(usize, u64),
    Fault,
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            plan,
            now: 0,
            events: BTreeMap::new(),
            numbered: 0,
            replicas: Vec::new(),
            store: Store {
                model: ReferenceStore::default(),
                past: Vec::new(),
                server: 1,
                server_clock_ms: 3_600_000 * MILLI,
                stopped_until: 0,
            },
            truth: Truth::default(),
            served: BTreeSet::new(),
            counts: Counts::default(),
        };
        for place in 0..plan.replicas {
            let replica = world.start(0);
            world.replicas.push(replica);
            world.push(0, Event::Wake(place, 0));
        }
        if plan.faults {
            let first = world.random.within(0, 2 * LEASE);
            world.push(first, Event::Fault);
        }
        world
    }

    fn start(&mut self, process: u64) -> Replica {
        let mode = FailMode::Closed;
        let lease = Duration::from_micros(LEASE);
        let drift = self.random.within(0, 2 * MAX_DRIFT_PPM);
        let mut share = LeasedShare::new("limit".into(), self.plan.spec, mode, lease);
        if self.plan.end_with_lease {
            share.set_ends_requests(true);
        }
        Replica {
            id: self.random.next() >> 11,
            process,
            offset: self.random.within(0, 1 << 42),
            drift_ppm: drift as i64 - MAX_DRIFT_PPM as i64,
            share,
            clock: StoreClock::default(),
            open: Vec::new(),
            paused_until: 0,
            cut_until: 0,
            stalled_until: 0,
        }
    }

    /// Runs until all requests have ended and all leased amounts are returned.
    pub(crate) fn run(&mut self) {
        let end = self.plan.busy + 6 * LEASE;
        while let Some(((at, _), event)) = self.events.pop_first() {
            if at > end {
                break;
            }
            self.now = self.now.max(at);
            self.counts.steps += 1;
            self.step(event);
            self.check();
        }
    }

    /// Returns the amount that a new replica gets if it requests everything after all leases are
    /// over and all buckets have drained, and the level before.
    pub(crate) fn ask_for_all(&mut self) -> (u64, u64) {
        let mut spec = self.plan.spec;
        if let LeasedLimitSpec::Budget { accounted, .. } = &mut spec {
            *accounted = self.truth.accounted;
        }
        let mut seq = 0;
        let mut probe = |proof, wanted| {
            seq += 1;
            ExchangeRequest {
                replica: 1 << 60,
                proof,
                lease: LEASE / MILLI,
                requests: vec![quota::LeaseRequest {
                    limit: "limit".into(),
                    spec,
                    seq,
                    acked: 0,
                    incarnation: 0,
                    retained: 0,
                    used: 0,
                    unacked: 0,
                    wanted,
                    waiting: wanted,
                    smallest_waiting: wanted,
                }],
            }
        };
        let (server, server_clock_ms) = (self.store.server, self.store.server_clock_ms + 1);
        let model = &mut self.store.model;
        let first = model.exchange(&probe(ElapsedProof::default(), 0), server, server_clock_ms);
        // First all leases end, which forfeits the held amounts. Then the buckets drain, here for
        // the time that the slowest bucket needs.
        let mut later = ElapsedProof {
            epoch: first.epoch,
            elapsed_ms: first.at,
            expired_event: first.event,
        };
        let second = model.exchange(&probe(later, 0), server, server_clock_ms);
        let level = second.replies[0].level;
        let all = match spec {
            LeasedLimitSpec::Permits { cap: all }
            | LeasedLimitSpec::Bucket { capacity: all, .. } => all,
            LeasedLimitSpec::Budget { amount, .. } => amount.saturating_sub(level),
        };
        later.elapsed_ms += 1 << 46;
        later.expired_event = second.event;
        let third = model.exchange(&probe(later, all), server, server_clock_ms + (1 << 56));
        (third.replies[0].held, level)
    }

    /// Returns the amount that was really spent.
    pub(crate) fn spent(&self) -> u64 {
        self.truth.accounted
    }

    /// Returns the amount that was really spent, without spending above reservations.
    pub(crate) fn spent_within_reservations(&self) -> u64 {
        self.truth.reserved
    }

    fn push(&mut self, after: Time, event: Event) {
        self.numbered += 1;
        self.events.insert((self.now + after, self.numbered), event);
    }

    fn step(&mut self, event: Event) {
        let (place, process) = match event {
            Event::Fault => return self.fault(),
            Event::Arrive(place, process, call) => return self.arrive(place, process, call),
            Event::Wake(place, process)
            | Event::Answered(place, process, _)
            | Event::Timeout(place, process, _)
            | Event::Notice(place, process)
            | Event::End(place, process, _)
            | Event::Deadline(place, process) => (place, process),
        };
        let paused = self.replicas[place].paused_until;
        if self.replicas[place].process != process {
            return;
        }
        if paused > self.now {
            // Events that have queued up while a process was paused come in any order.
            let after = paused - self.now + self.random.within(0, 2);
            return self.push(after, event);
        }
        if self.plan.end_with_lease {
            // A process does this first when it goes on.
            self.look_for_loss(place);
        }
        match event {
            Event::Wake(..) => self.wake(place),
            Event::Answered(_, _, answer) => self.answered(place, &answer),
            Event::Timeout(_, _, seq) => self.timed_out(place, seq),
            Event::Notice(..) => self.on_notice(place),
            Event::End(_, _, number) => self.end(place, number),
            Event::Deadline(..) | Event::Arrive(..) | Event::Fault => {}
        }
    }

    fn local(&self, place: usize) -> Duration {
        let replica = &self.replicas[place];
        let scaled = i128::from(self.now) * (1_000_000 + i128::from(replica.drift_ppm)) / 1_000_000;
        Duration::from_micros(replica.offset + scaled as u64)
    }

    fn wake(&mut self, place: usize) {
        if self.random.chance(50) {
            self.look_for_loss(place);
        }
        if self.now < self.plan.busy {
            for _ in 0..3 {
                if self.random.chance(self.plan.pressure) {
                    self.request(place);
                }
            }
        }
        self.poll(place);
        let pause = match self.random.chance(60) {
            true => self.random.within(1, 300 * MILLI),
            false => self.random.within(300 * MILLI, 2_000 * MILLI),
        };
        let process = self.replicas[place].process;
        self.push(pause, Event::Wake(place, process));
    }

    fn look_for_loss(&mut self, place: usize) {
        let now = self.local(place);
        let replica = &mut self.replicas[place];
        if replica.share.take_loss(now) {
            self.counts.lost += 1;
            if self.plan.end_with_lease {
                for open in std::mem::take(&mut replica.open) {
                    replica.share.settle(open.taken, 0);
                    self.truth.ended(
                        open.taken.amount,
                        open.taken.amount,
                        &self.plan.spec,
                        self.now,
                    );
                    self.served.retain(|(_, number)| *number != open.number);
                }
            }
        }
    }

    fn request(&mut self, place: usize) {
        // Whichever call comes first finds the end of a lease.
        if self.random.chance(50) {
            self.look_for_loss(place);
        }
        let now = self.local(place);
        let amount = match self.plan.spec {
            LeasedLimitSpec::Permits { .. } => 1,
            spec => self.random.within(1, 1 + spec.capacity() / 4),
        };
        let spends = match self.random.within(0, 10) {
            0 => amount + self.random.within(0, amount),
            1..5 => amount,
            _ => self.random.within(0, amount),
        };
        let replica = &mut self.replicas[place];
        let Some(taken) = replica.share.take(amount, now) else {
            self.counts.short += 1;
            return;
        };
        self.counts.taken += 1;
        assert!(replica.share.is_leased(now), "admitted without a lease");
        self.numbered += 1;
        let (number, process) = (self.numbered, replica.process);
        replica.open.push(Open {
            number,
            taken,
            spends,
        });
        self.truth.taken(amount, &self.plan.spec, self.now);
        let lasts = self.random.within(1, self.plan.longest);
        let running = self.served.split_off(&(self.now, 0));
        self.served = running;
        self.served.insert((self.now + lasts, number));
        self.push(lasts, Event::End(place, process, number));
        if self.plan.end_with_lease {
            self.look_for_loss(place);
        }
    }

    fn end(&mut self, place: usize, number: u64) {
        let replica = &mut self.replicas[place];
        if let Some(i) = replica.open.iter().position(|open| open.number == number) {
            let open = replica.open.swap_remove(i);
            replica.share.settle(open.taken, open.spends);
            self.truth
                .ended(open.taken.amount, open.spends, &self.plan.spec, self.now);
        }
        if self.random.chance(30) {
            self.poll(place);
        }
    }

    fn poll(&mut self, place: usize) {
        self.look_for_loss(place);
        let now = self.local(place);
        let cut = self.replicas[place].cut_until > self.now;
        let replica = &mut self.replicas[place];
        replica.share.set_accounted(self.truth.accounted);
        let Some(request) = replica.share.poll(now) else {
            return;
        };
        let (process, seq) = (replica.process, request.seq);
        let proof = replica.clock.proof(now, Duration::from_micros(LEASE));
        let call = ExchangeRequest {
            replica: replica.id,
            proof,
            lease: LEASE / MILLI,
            requests: vec![request],
        };
        self.push(TIMEOUT, Event::Timeout(place, process, seq));
        if self.plan.faults && self.random.chance(1) {
            let sleeps = self.random.within(0, LEASE);
            self.replicas[place].paused_until = self.now + sleeps;
        }
        let copies = match self.plan.faults && self.random.chance(5) {
            true => 2,
            false => 1,
        };
        for _ in 0..copies {
            if let (false, Some(delay)) = (cut, self.travel(place)) {
                self.push(delay, Event::Arrive(place, process, call.clone()));
            }
        }
    }

    /// Returns the time that a message from or to a replica travels, or `None` if it is lost. On a
    /// connection that has stalled, everything arrives late.
    fn travel(&mut self, place: usize) -> Option<Time> {
        let stalled = self.replicas[place].stalled_until.saturating_sub(self.now);
        let travels = match self.random.within(0, 100) {
            _ if !self.plan.faults => Some(self.random.within(100, 3 * MILLI)),
            0..2 => None,
            2..5 => Some(self.random.within(0, 2 * LEASE)),
            5..10 => Some(self.random.within(0, 200 * MILLI)),
            _ => Some(self.random.within(100, 3 * MILLI)),
        };
        travels.map(|travels| stalled + travels)
    }

    fn arrive(&mut self, place: usize, process: u64, call: ExchangeRequest) {
        if self.store.stopped_until > self.now {
            let after = self.store.stopped_until - self.now + self.random.within(0, 2);
            return self.push(after, Event::Arrive(place, process, call));
        }
        let store = &mut self.store;
        let server_clock_ms = self.now + store.server_clock_ms;
        let answer = store.model.exchange(&call, store.server, server_clock_ms);
        if self.random.chance(10) {
            self.store.past.push(self.store.model.clone());
        }
        if !self.store.model.notices().is_empty() {
            self.notify_all_but(place);
        }
        self.counts.quarantined += u64::from(answer.replies[0].quarantined);
        self.counts.late += u64::from(answer.replies[0].seq != call.requests[0].seq);
        let cut = self.replicas[place].cut_until > self.now;
        if let (false, Some(delay)) = (cut, self.travel(place)) {
            self.push(delay, Event::Answered(place, process, answer));
        }
    }

    fn answered(&mut self, place: usize, answer: &ExchangeResponse) {
        let now = self.local(place);
        let replica = &mut self.replicas[place];
        let lease = Duration::from_micros(LEASE);
        replica
            .clock
            .observe(answer.epoch, answer.at, answer.event, lease, now);
        replica.share.on_grant(&answer.replies[0], now);
        if let Some(deadline) = replica.share.deadline() {
            let left = deadline.saturating_sub(now).as_micros() as Time;
            // By the slowest clock.
            let left = left * 1_000_000 / (1_000_000 - MAX_DRIFT_PPM) + 1;
            let process = replica.process;
            if self.plan.end_with_lease {
                self.push(left, Event::Deadline(place, process));
            }
        }
        if self.now < self.plan.busy && self.random.chance(self.plan.pressure) {
            self.request(place);
        }
    }

    fn notify_all_but(&mut self, place: usize) {
        for other in (0..self.replicas.len()).filter(|other| *other != place) {
            let cut = self.replicas[other].cut_until > self.now;
            if let (false, Some(delay)) = (cut, self.travel(other)) {
                let process = self.replicas[other].process;
                self.push(delay, Event::Notice(other, process));
            }
        }
    }

    fn on_notice(&mut self, place: usize) {
        self.counts.noticed += 1;
        self.replicas[place].share.on_notice();
        self.poll(place);
    }

    fn timed_out(&mut self, place: usize, seq: u64) {
        let now = self.local(place);
        self.replicas[place].share.on_no_answer(seq, now);
    }
}

/// Runs a schedule, and prints its seed if it fails.
pub(crate) fn run(seed: u64, plan: Plan) -> World {
    struct FailedSchedule(u64, Plan);
    impl Drop for FailedSchedule {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!(
                    "the schedule with SLUICEGATE_SIM_SEED={} failed: {:?}",
                    self.0, self.1
                );
            }
        }
    }
    let failed = FailedSchedule(seed, plan);
    let mut world = World::new(seed, plan);
    world.run();
    drop(failed);
    world
}
