//! The admin listener of a gateway.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use benches::Outcome;
use benches::client::Connection;
use benches::load::{bounded, to_message};
use benches::subject::Subject;

/// A client of a gateway's admin listener.
pub(crate) struct Operator<'a> {
    subject: &'a Subject,
}

impl<'a> Operator<'a> {
    pub(crate) fn of(subject: &'a Subject) -> Self {
        Self { subject }
    }

    /// The sum of a metric over its labels: of all lines that begin with `beginning` and contain
    /// `part`.
    pub(crate) async fn sum(&self, beginning: &str, part: &str) -> Outcome<f64> {
        let text = self.get("/metrics").await?;
        let lines = text
            .lines()
            .filter(|line| line.starts_with(beginning) && line.contains(part));
        Ok(lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .fold(0.0, |sum, value| sum + value))
    }

    /// The lines of a metric that are not zero, without its name.
    pub(crate) async fn lines(&self, name: &str) -> Outcome<String> {
        let text = self.get("/metrics").await?;
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix(name))
            .filter(|line| !line.ends_with(" 0"));
        Ok(lines.collect::<Vec<_>>().join(", "))
    }

    /// The number of permits in use.
    pub(crate) async fn in_flight(&self) -> Outcome<f64> {
        self.sum("sluicegate_in_flight ", "").await
    }

    /// Waits until a sum has this value; returns how long that took, if it was within the time.
    pub(crate) async fn await_sum(
        &self,
        beginning: &str,
        part: &str,
        owed: f64,
        within: Duration,
    ) -> Outcome<Option<Duration>> {
        let started = Instant::now();
        let reached = async {
            while self.sum(beginning, part).await? != owed {
                sleep(GLANCE).await;
            }
            Ok(started.elapsed())
        };
        timeout(within, reached).await.ok().transpose()
    }

    /// Requests a page repeatedly until this is dropped or `span` has passed; returns the
    /// latencies, sorted.
    pub(crate) async fn poll(&self, path: &str, span: Duration) -> Outcome<Vec<Duration>> {
        let started = Instant::now();
        let mut times = Vec::new();
        while started.elapsed() < span {
            let asked = Instant::now();
            self.get(path).await?;
            times.push(asked.elapsed());
            sleep(GLANCE).await;
        }
        times.sort_unstable();
        Ok(times)
    }

    async fn get(&self, path: &str) -> Outcome<String> {
        let admin = self
            .subject
            .admin
            .ok_or_else(|| "the gateway has no admin address".to_owned())?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
        let asked = async {
            let mut connection = Connection::open(admin).await?;
            connection.ask_only(request.as_bytes()).await?;
            connection.rest().await
        };
        let answer = bounded(GRACE, asked).await?.map_err(to_message)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if answer.starts_with("HTTP/1.1 200 ") {
            Ok(answer)
        } else {
            Err(format!("{path}: {answer}"))
        }
    }
}

const GLANCE: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(20);
