//! Faults in a simulated world.

use sluicegate_lease::ReferenceStore;

use super::{Event, LEASE, MILLI, World};

impl World {
    pub(super) fn fault(&mut self) {
        if self.now > self.plan.busy {
            return;
        }
        let next = self.random.within(0, 2 * LEASE);
        self.push(next, Event::Fault);
        let place = self.random.within(0, self.replicas.len() as u64) as usize;
        let long = self.random.within(0, 3 * LEASE);
        match self.random.within(0, 10) {
            9 => {
                let process = self.replicas[place].process + 1;
                self.replicas[place] = self.start(process);
                self.push(self.now % LEASE, Event::Wake(place, process));
            }
            0 | 1 => {
                // Events wait for the end of a pause, so that no other pause may make it shorter.
                let paused_until = &mut self.replicas[place].paused_until;
                *paused_until = (*paused_until).max(self.now + long);
            }
            2 => self.replicas[place].cut_until = self.now + long,
            3 => {
                self.counts.stalls += 1;
                self.replicas[place].stalled_until = self.now + long;
            }
            4 => {
                for replica in &mut self.replicas {
                    replica.cut_until = self.now + long;
                }
            }
            5 => self.store.stopped_until = self.now + long,
            // The store's clock jumps back or forward by up to an hour.
            6 if !self.plan.clock_is_set => {}
            6 => self.store.server_clock_ms = self.random.within(0, 7_200_000 * MILLI),
            7 => {
                self.lose();
                self.store.model = ReferenceStore::default();
                self.store.server += self.random.within(0, 2);
            }
            _ => {
                self.lose();
                self.store.server += 1;
                if let Some(past) = self.store.past.pop() {
                    self.store.model = past;
                }
            }
        }
    }

    fn lose(&mut self) {
        self.counts.losses += 1;
        self.truth.take_loss(&self.plan.spec, self.now);
    }
}
