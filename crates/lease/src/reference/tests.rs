//! Tests of the rules of a store, with one or two replicas.

use quota::LeasedLimitSpec;

use super::*;

const CLOCK: u64 = 1_790_000_000_000_000;

fn request(spec: LeasedLimitSpec, seq: u64, retained: u64, wanted: u64) -> LeaseRequest {
    LeaseRequest {
        limit: "q0/team-a".into(),
        spec,
        seq,
        acked: seq - 1,
        incarnation: 0,
        retained,
        used: 0,
        unacked: 0,
        wanted,
        waiting: wanted,
        smallest_waiting: wanted.min(1),
    }
}

fn permits(seq: u64, retained: u64, wanted: u64) -> LeaseRequest {
    request(LeasedLimitSpec::Permits { cap: 10 }, seq, retained, wanted)
}

/// Sends one lease request, after `millis` have passed by all clocks, and returns the grant.
fn send(
    model: &mut ReferenceStore,
    replica: u64,
    request: LeaseRequest,
    (millis, over): (u64, u64),
) -> LeaseGrant {
    let proof = ElapsedProof {
        epoch: SINGLE_PROCESS_EPOCH,
        elapsed_ms: millis,
        expired_event: over,
    };
    let call = ExchangeRequest {
        replica,
        proof,
        lease: 10_000,
        requests: vec![request],
    };
    model.exchange(&call, 0, CLOCK + 1_000 * millis).replies[0]
}

/// Returns a store that was used at the time 0, so that its clock counts from there.
fn store() -> ReferenceStore {
    let mut model = ReferenceStore::settled();
    send(&mut model, 9, permits(1, 0, 0), (0, 0));
    model
}

#[test]
fn replicas_share_the_cap_and_expired_leases_free_their_share() {
    let mut model = store();
    assert_eq!(send(&mut model, 1, permits(1, 0, 7), (0, 0)).held, 7);
    let reply = send(&mut model, 2, permits(1, 0, 7), (0, 0));
    assert_eq!((reply.held, reply.available, reply.replicas), (3, 0, 2));
    // The second replica still waits for four.
    assert_eq!(
        send(&mut model, 1, permits(2, 7, 0), (0, 0)).waiting_replicas,
        1
    );
    // The last request of the first replica was event 5.
    let reply = send(&mut model, 2, permits(2, 3, 7), (0, 3));
    assert_eq!((reply.held, reply.replicas), (3, 2));
    let reply = send(&mut model, 2, permits(3, 3, 7), (0, 5));
    assert_eq!((reply.held, reply.replicas), (10, 1));
}

#[test]
fn unknown_claim_counts_and_starts_a_quarantine() {
    let mut model = store();
    send(&mut model, 1, permits(1, 0, 4), (0, 0));
    model.limits.clear();
    let reply = send(&mut model, 1, permits(2, 4, 1), (0, 0));
    assert_eq!(
        (reply.held, reply.available, reply.quarantined),
        (4, 0, true)
    );
    // That was event 4.
    let reply = send(&mut model, 2, permits(1, 0, 1), (0, 3));
    assert_eq!((reply.held, reply.quarantined), (0, true));
    send(&mut model, 1, permits(3, 4, 0), (0, 3));
    let reply = send(&mut model, 2, permits(2, 0, 1), (0, 4));
    assert_eq!(
        (reply.held, reply.available, reply.quarantined),
        (1, 5, false)
    );
}

#[test]
fn new_epoch_grants_nothing_for_one_lease() {
    let mut model = ReferenceStore::default();
    let mut send = |seq, retained, epoch, over| {
        let call = ExchangeRequest {
            replica: 1,
            proof: ElapsedProof {
                epoch,
                elapsed_ms: 0,
                expired_event: over,
            },
            lease: 10_000,
            requests: vec![permits(seq, retained, 2)],
        };
        let answer = model.exchange(&call, 5, CLOCK);
        assert_eq!((answer.epoch, answer.event), (CLOCK, seq + 1));
        (answer.replies[0].held, answer.replies[0].quarantined)
    };
    assert_eq!(send(1, 3, 0, 0), (3, true));
    // A proof of another epoch proves nothing.
    assert_eq!(send(2, 3, 7, 1), (3, true));
    assert_eq!(send(3, 3, CLOCK, 0), (3, true));
    assert_eq!(send(4, 3, CLOCK, 1), (5, false));
}

/// If only the store state is lost, event numbers start over, far below the events of the known leases.
/// These are over after one lease, too.
#[test]
fn leases_of_a_lost_epoch_are_over_one_lease_later() {
    let mut model = store();
    for seq in 2..20 {
        send(&mut model, 9, permits(seq, 0, 0), (0, 0));
    }
    assert_eq!(send(&mut model, 1, permits(1, 0, 7), (0, 0)).held, 7);
    model.state = None;
    let proof = ElapsedProof::default();
    let (reply, known) = send_to(&mut model, 2, permits(1, 0, 7), proof);
    assert_eq!((reply.held, reply.quarantined), (0, true));
    let (reply, _) = send_to(&mut model, 2, permits(2, 0, 7), known);
    assert_eq!(
        (reply.held, reply.available, reply.replicas),
        (7, 3, 1),
        "the lease of the first replica is over"
    );
}

/// A request is stale once its lease and a tenth of it are over, not before.
#[test]
fn a_request_counts_until_its_lease_and_a_tenth_are_over() {
    for (millis, available) in [(11_000, 8), (11_001, 3)] {
        let mut model = store();
        send(&mut model, 1, permits(1, 0, 7), (0, 0));
        send(&mut model, 2, permits(1, 0, 0), (millis, 0));
        send(&mut model, 1, permits(2, 2, 0), (0, 0));
        let reply = send(&mut model, 2, permits(2, 0, 0), (millis, 0));
        assert_eq!(reply.available, available, "{millis}");
    }
}

/// A rate of 60 units in a minute.
const RATE: LeasedLimitSpec = LeasedLimitSpec::Bucket {
    per_minute: 60,
    capacity: 60,
};

fn rate(seq: u64, retained: u64, wanted: u64) -> LeaseRequest {
    request(RATE, seq, retained, wanted)
}

/// Sends a lease request to a store whose epoch the replica may not know. Returns the grant, and
/// the proof that all leases so far are over.
fn send_to(
    model: &mut ReferenceStore,
    replica: u64,
    request: LeaseRequest,
    proof: ElapsedProof,
) -> (LeaseGrant, ElapsedProof) {
    let call = ExchangeRequest {
        replica,
        proof,
        lease: 10_000,
        requests: vec![request],
    };
    let answer = model.exchange(&call, 5, CLOCK);
    let known = ElapsedProof {
        epoch: answer.epoch,
        elapsed_ms: answer.at,
        expired_event: answer.event,
    };
    (answer.replies[0], known)
}

#[test]
fn new_store_lends_full_buckets_at_once() {
    let mut model = ReferenceStore::default();
    let (reply, _) = send_to(&mut model, 1, rate(1, 0, 40), ElapsedProof::default());
    assert_eq!(
        (reply.held, reply.available, reply.quarantined),
        (40, 20, false)
    );
    let (reply, _) = send_to(&mut model, 2, rate(1, 0, 40), ElapsedProof::default());
    assert_eq!((reply.held, reply.available), (20, 0));
    let mut other = permits(1, 0, 1);
    other.limit = "q0/team-b".into();
    let (reply, _) = send_to(&mut model, 1, other, ElapsedProof::default());
    assert_eq!((reply.held, reply.quarantined), (0, true));
}

/// The store knows the use of a rate, and not its rest.
#[test]
fn rate_that_changes_keeps_its_use() {
    for (limit, available) in [(1_000, 910), (100, 10), (50, 0)] {
        let bucket = |units| LeasedLimitSpec::Bucket {
            per_minute: units,
            capacity: units,
        };
        let mut model = store();
        let reply = send(&mut model, 1, request(bucket(100), 1, 0, 90), (0, 0));
        assert_eq!((reply.held, reply.available), (90, 10));
        let spent = LeaseRequest {
            used: 90,
            unacked: 90,
            ..request(bucket(limit), 2, 0, 0)
        };
        let reply = send(&mut model, 1, spent, (0, 0));
        assert_eq!((reply.level, reply.available), (90, available));
    }
}

/// The end of the quarantine takes nothing from a bucket either.
#[test]
fn bucket_stays_as_it_is_when_the_life_is_settled() {
    let mut model = ReferenceStore::default();
    let (_, known) = send_to(&mut model, 1, rate(1, 0, 40), ElapsedProof::default());
    let (reply, _) = send_to(&mut model, 2, rate(1, 0, 0), known);
    assert_eq!(
        (reply.available, reply.level),
        (20, 40),
        "the lease of the first is over"
    );
    let (reply, _) = send_to(&mut model, 2, rate(2, 0, 20), known);
    assert_eq!((reply.held, reply.level), (20, 40));
}

#[test]
fn a_bucket_is_full_after_a_loss_but_for_claims() {
    let mut model = ReferenceStore::default();
    let (_, before) = send_to(&mut model, 1, rate(1, 0, 25), ElapsedProof::default());
    send_to(&mut model, 2, rate(1, 0, 30), before);
    model = ReferenceStore::default();
    let (reply, _) = send_to(&mut model, 3, rate(1, 0, 10), ElapsedProof::default());
    assert_eq!((reply.held, reply.available), (10, 50), "nothing is known");
    let (reply, _) = send_to(&mut model, 1, rate(2, 25, 0), before);
    assert_eq!((reply.held, reply.available), (25, 25));
    let (reply, _) = send_to(&mut model, 2, rate(2, 30, 9), before);
    assert_eq!(
        (reply.held, reply.available, reply.quarantined),
        (30, 0, false)
    );
}

#[test]
fn a_bucket_whose_key_was_removed_is_full_but_for_claims() {
    let mut model = store();
    send(&mut model, 1, rate(1, 0, 25), (0, 0));
    send(&mut model, 2, rate(1, 0, 30), (0, 0));
    model.limits.clear();
    let reply = send(&mut model, 1, rate(2, 25, 5), (0, 0));
    assert_eq!(
        (reply.held, reply.available, reply.quarantined),
        (30, 30, false)
    );
    let reply = send(&mut model, 2, rate(2, 20, 0), (0, 0));
    assert_eq!(
        (reply.held, reply.available, reply.quarantined),
        (20, 10, false)
    );
}

/// If only the store state is lost, the bucket is still known.
#[test]
fn lost_mark_leaves_buckets_as_they_are() {
    let mut model = store();
    send(&mut model, 1, rate(1, 0, 25), (0, 0));
    let mut spent = rate(2, 5, 0);
    (spent.used, spent.unacked) = (80, 80);
    assert_eq!(send(&mut model, 1, spent, (0, 0)).level, 80);
    model.state = None;
    let (reply, _) = send_to(&mut model, 2, rate(1, 0, 5), ElapsedProof::default());
    assert_eq!((reply.held, reply.level, reply.quarantined), (0, 80, false));
}

/// Spending above reservations that a replica has not reported before the loss is paid first.
#[test]
fn debt_that_a_replica_still_reports_counts_after_a_loss() {
    let mut model = ReferenceStore::default();
    let (_, before) = send_to(&mut model, 1, rate(1, 0, 10), ElapsedProof::default());
    model = ReferenceStore::default();
    let mut in_debt = rate(2, 0, 1);
    (in_debt.used, in_debt.unacked) = (200, 150);
    let (reply, known) = send_to(&mut model, 1, in_debt.clone(), before);
    assert_eq!((reply.held, reply.level), (0, 150));
    // It is counted once if the response was lost and the next request reports the same.
    in_debt.seq = 3;
    let (reply, _) = send_to(&mut model, 1, in_debt, known);
    assert_eq!((reply.held, reply.level), (0, 150));
}

#[test]
fn new_store_lends_no_money_before_it_knows_what_was_spent() {
    let mut model = ReferenceStore::default();
    let request = |seq, accounted| {
        let spec = LeasedLimitSpec::Budget {
            amount: 1_000,
            window: 7,
            accounted,
        };
        request(spec, seq, 0, 100)
    };
    let (reply, known) = send_to(&mut model, 1, request(1, 300), ElapsedProof::default());
    assert_eq!(
        (reply.held, reply.available, reply.quarantined),
        (0, 0, true)
    );
    let (reply, _) = send_to(&mut model, 1, request(2, 300), known);
    assert_eq!(
        (reply.held, reply.level, reply.quarantined),
        (100, 300, false)
    );
}

#[test]
fn a_bucket_flows_by_the_clock_and_not_faster_than_is_proven() {
    let spec = LeasedLimitSpec::Bucket {
        per_minute: 60_000_001,
        capacity: 10_000,
    };
    let mut model = store();
    let mut spend = |seq, used, server_clock_ms, proven| {
        let mut request = request(spec, seq, 0, 0);
        (request.used, request.unacked) = (used, used);
        let proof = ElapsedProof {
            epoch: SINGLE_PROCESS_EPOCH,
            elapsed_ms: proven,
            expired_event: 0,
        };
        let call = ExchangeRequest {
            replica: 1,
            proof,
            lease: 10_000,
            requests: vec![request],
        };
        model.exchange(&call, 0, CLOCK + server_clock_ms).replies[0].level
    };
    // 1,000 a millisecond.
    assert_eq!(spend(1, 8_000, 0, 0), 8_000);
    assert_eq!(spend(2, 8_000, 2_999, 3), 6_000);
    // The clock is set forward, and then back.
    assert_eq!(spend(3, 8_000, 3_600_000_000, 3), 5_000);
    assert_eq!(spend(4, 8_000, 0, 5), 5_000);
    assert_eq!(spend(5, 8_500, 1_000, 5), 4_500);
    assert_eq!(spend(6, 8_000, 1_000, 5), 4_000);
}

#[test]
fn expired_budget_share_counts_as_spent() {
    let spec = LeasedLimitSpec::Budget {
        amount: 1_000,
        window: 7,
        accounted: 0,
    };
    let mut model = store();
    assert_eq!(
        send(&mut model, 1, request(spec, 1, 0, 300), (0, 0)).held,
        300
    );
    // A quarter of the available amount, since there are two replicas.
    let mut in_advance = request(spec, 1, 0, 0);
    in_advance.wanted = 999;
    let reply = send(&mut model, 2, in_advance, (0, 0));
    assert_eq!((reply.held, reply.available, reply.level), (175, 525, 0));
    let mut later = request(spec, 2, 100, 0);
    (later.used, later.unacked) = (75, 75);
    let reply = send(&mut model, 2, later, (0, 3));
    assert_eq!((reply.held, reply.available, reply.level), (100, 525, 375));
    // All or nothing: 600 are not available.
    let mut much = request(spec, 3, 100, 600);
    (much.used, much.smallest_waiting) = (75, 600);
    assert_eq!(send(&mut model, 2, much, (0, 3)).held, 100);
}

/// A replica that begins to wait notifies the others, and so does a replica that returns an amount
/// while another one waits.
#[test]
fn waiting_and_returning_replicas_notify_the_others() {
    let mut model = store();
    let named = ["q0/team-a".to_owned()];
    send(&mut model, 1, permits(1, 0, 10), (0, 0));
    assert!(model.notices().is_empty(), "there was enough");
    send(&mut model, 2, permits(1, 0, 2), (0, 0));
    assert_eq!(model.notices(), named);
    send(&mut model, 1, permits(2, 10, 0), (0, 0));
    assert!(model.notices().is_empty(), "nothing came back");
    send(&mut model, 1, permits(3, 4, 0), (0, 0));
    assert_eq!(model.notices(), named);
    assert_eq!(send(&mut model, 2, permits(2, 0, 2), (0, 0)).held, 2);
    send(&mut model, 1, permits(4, 3, 0), (0, 0));
    assert!(model.notices().is_empty(), "nobody waits any more");
}

/// Two waiting replicas send one notice each. Otherwise each notice would make the other replica
/// send another request, without success and without end.
#[test]
fn two_replicas_that_wait_send_a_notice_each() {
    let mut model = store();
    let named = ["q0/team-a".to_owned()];
    send(&mut model, 1, permits(1, 0, 5), (0, 0));
    send(&mut model, 2, permits(1, 0, 5), (0, 0));
    let mut request = |replica, seq, retained, waiting| {
        let reply = send(&mut model, replica, permits(seq, retained, waiting), (0, 0));
        (reply.held, model.notices() == named)
    };
    assert_eq!(request(1, 2, 5, 3), (5, true));
    assert_eq!(request(2, 2, 5, 1), (5, true));
    assert_eq!(request(1, 3, 5, 3), (5, false));
    assert_eq!(request(2, 3, 5, 2), (5, false));
    // A replica whose requests were served sends another notice when requests wait again.
    assert_eq!(request(2, 4, 4, 0), (4, true));
    assert_eq!(request(1, 4, 5, 1), (6, false));
    assert_eq!(request(1, 5, 6, 1), (6, true));
}

/// A waiting replica sends no notice if no other replica holds anything.
#[test]
fn lone_waiting_replica_sends_no_notice() {
    let mut model = store();
    send(&mut model, 1, permits(1, 0, 12), (0, 0));
    assert!(model.notices().is_empty());
}

fn budget(seq: u64, used: u64) -> LeaseRequest {
    let spec = LeasedLimitSpec::Budget {
        amount: 1_000,
        window: 7,
        accounted: 0,
    };
    LeaseRequest {
        used,
        unacked: used,
        ..request(spec, seq, 0, 0)
    }
}

/// Two requests of a replica arrive after its lease is over. The second one reports less spending,
/// because of a refund, which must not count once more.
#[test]
fn an_ask_of_a_lease_that_is_over_changes_nothing() {
    let mut model = store();
    send(&mut model, 1, budget(1, 0), (0, 0));
    assert_eq!(send(&mut model, 1, budget(2, 500), (0, 0)).level, 500);
    assert_eq!(send(&mut model, 1, budget(5, 400), (0, 0)).level, 400);
    // A request of another replica proves that the lease of the first one is over.
    assert_eq!(send(&mut model, 2, budget(1, 0), (12_000, 5)).level, 400);
    for (millis, seq, used) in [(0, 3, 500), (0, 4, 400), (12_000, 3, 500), (12_000, 4, 400)] {
        let reply = send(&mut model, 1, budget(seq, used), (millis, 0));
        assert_eq!((reply.seq, reply.held, reply.level), (0, 0, 400), "{seq}");
    }
    // The first replica starts over.
    let mut anew = budget(6, 10);
    (anew.acked, anew.incarnation) = (0, 1);
    assert_eq!(send(&mut model, 1, anew, (12_000, 0)).level, 410);
}

/// Permits that a replica retains after its lease start no quarantine.
#[test]
fn a_claim_of_a_lease_that_is_over_is_not_believed() {
    let mut model = store();
    send(&mut model, 1, permits(1, 0, 4), (0, 0));
    assert_eq!(send(&mut model, 2, permits(1, 0, 9), (12_000, 3)).held, 9);
    let reply = send(&mut model, 1, permits(2, 4, 0), (0, 0));
    assert_eq!((reply.seq, reply.held, reply.quarantined), (0, 0, false));
}

/// A request that is sent once more because its response was lost changes nothing.
#[test]
fn repeated_sequence_number_changes_nothing() {
    let mut model = store();
    send(&mut model, 1, budget(1, 0), (0, 0));
    assert_eq!(send(&mut model, 1, budget(2, 500), (0, 0)).level, 500);
    let reply = send(&mut model, 1, budget(2, 700), (0, 0));
    assert_eq!((reply.seq, reply.level), (2, 500));
}

#[test]
fn spending_is_counted_across_its_modulus() {
    let mut model = store();
    let most = (1 << 52) - 10;
    let mut first = budget(2, most);
    first.unacked = 0;
    assert_eq!(send(&mut model, 1, first, (0, 0)).level, 0);
    assert_eq!(send(&mut model, 1, budget(3, 5), (0, 0)).level, 15);
    assert_eq!(send(&mut model, 1, budget(4, most + 5), (0, 0)).level, 5);
}

#[test]
fn new_incarnation_forfeits_its_holdings() {
    let mut model = store();
    let mut first = budget(1, 0);
    (first.wanted, first.waiting) = (300, 300);
    assert_eq!(send(&mut model, 1, first, (0, 0)).held, 300);
    let mut anew = budget(2, 0);
    (anew.acked, anew.incarnation) = (0, 1);
    let reply = send(&mut model, 1, anew, (0, 0));
    assert_eq!((reply.held, reply.level), (0, 300));
}
