//! Repeated stops under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::verdict::Check;
use benches::client::Connection;
use benches::load::{bounded, to_message};
use benches::question::Question;
use benches::subject::Subject;
use benches::{Outcome, question, subject};

use crate::Ground;

/// The results of the stops.
#[derive(Default)]
struct Tally {
    /// Requests and streams that were answered completely.
    answered: usize,
    /// Those that were not, though their first byte was sent while the gateway still accepted
    /// connections.
    lost: Vec<String>,
    /// Endless streams that got exactly one failure event and a proper end.
    failed_well: usize,
    endless: usize,
    /// Stops that ended in time and with success.
    ended_well: usize,
    slowest: Duration,
}

pub(crate) async fn run(ground: &Ground) -> Outcome<Vec<Check>> {
    let mut all = Tally::default();
    for _ in 0..ground.cycles {
        cycle(ground, &mut all).await?;
    }
    for lost in all.lost.iter().take(5) {
        eprintln!("lost: {lost}");
    }
    let most = (LAME_DUCK + DRAIN + Duration::from_secs(2)).as_secs_f64();
    Ok(vec![
        Check::info("restarts: requests and streams answered", all.answered),
        Check::is("restarts: lost or truncated", &all.lost.len(), &0),
        Check::is(
            "restarts: endless streams with a failure event",
            &all.failed_well,
            &all.endless,
        ),
        Check::is(
            "restarts: exits in time with status 0",
            &all.ended_well,
            &ground.cycles,
        ),
        Check::at_most(
            "restarts: slowest exit",
            all.slowest.as_secs_f64(),
            most,
            "s",
        ),
    ])
}

/// Starts and stops a gateway once.
async fn cycle(ground: &Ground, all: &mut Tally) -> Outcome {
    let milliseconds = |time: Duration| time.as_millis();
    let limits = format!(
        "{}lame_duck = \"{} ms\"\ndrain = \"{} ms\"\n",
        subject::ROOM,
        milliseconds(LAME_DUCK),
        milliseconds(DRAIN)
    );
    let config = question::configuration(ground.upstream.address, &limits);
    let mut gateway = subject::gateway(&ground.gateway, &config)?;
    let door = Door::watch(gateway.address);
    let mut clients = JoinSet::new();
    for question in [Question::Small, Question::Chat] {
        for _ in 0..CLIENTS {
            clients.spawn(ask_on(
                gateway.address,
                gateway.request(question),
                question,
                Arc::clone(&door),
            ));
        }
    }
    let mut endless = JoinSet::new();
    for _ in 0..CLIENTS {
        endless.spawn(endure(gateway.address, gateway.request(Question::Idle)));
    }
    sleep(LIFE).await;
    gateway.signal("TERM")?;
    let told_so = Instant::now();
    let status = end(&mut gateway).await?;
    let took = told_so.elapsed();
    all.slowest = all.slowest.max(took);
    all.ended_well +=
        usize::from(status == Some(0) && took <= LAME_DUCK + DRAIN + Duration::from_secs(2));
    while let Some(joined) = bounded(GRACE, clients.join_next()).await? {
        let (answered, failures) = joined.map_err(to_message)?;
        all.answered += answered;
        let last = door.last_open();
        let lost = failures.into_iter().filter(|(sent, _)| *sent <= last);
        all.lost.extend(lost.map(|(sent, why)| {
            format!("{why}, {:?} after the signal", sent.duration_since(told_so))
        }));
    }
    while let Some(joined) = bounded(GRACE, endless.join_next()).await? {
        all.endless += 1;
        all.failed_well += usize::from(joined.map_err(to_message)?);
    }
    Ok(())
}

/// Sends requests until connections are refused; returns how many responses were complete, and when
/// the requests of the others were sent.
async fn ask_on(
    address: std::net::SocketAddr,
    request: Bytes,
    question: Question,
    door: Arc<Door>,
) -> (usize, Vec<(Instant, String)>) {
    let (mut answered, mut failures) = (0, Vec::new());
    while !door.closed.load(Ordering::Relaxed) {
        let Ok(mut connection) = Connection::open(address).await else {
            break;
        };
        loop {
            let sent = Instant::now();
            let asked = async {
                match question {
                    Question::Small => {
                        let answer = connection.answer(&request).await?;
                        Ok((answer.status, answer.closes))
                    }
                    _ => connection.stream(&request).await.map(|_| (200, true)),
                }
            };
            let asked: std::io::Result<(u16, bool)> = asked.await;
            match asked {
                Ok((200, closes)) => {
                    answered += 1;
                    if closes {
                        break;
                    }
                }
                Ok((status, _)) => {
                    failures.push((sent, format!("{question:?}: status {status}")));
                    break;
                }
                Err(error) => {
                    failures.push((sent, format!("{question:?}: {error}")));
                    break;
                }
            }
        }
    }
    (answered, failures)
}

/// Keeps a stream open to its end; returns true if that was one failure event, the end of the body
/// and a FIN.
async fn endure(address: std::net::SocketAddr, request: Bytes) -> bool {
    let ended = async {
        let mut connection = Connection::open(address).await?;
        connection.open_stream(&request).await?;
        connection.rest().await
    };
    ended.await.is_ok_and(|rest: Vec<u8>| {
        let failures = memmem::find_iter(&rest, br#"data: {"error""#).count();
        failures == 1
            && rest.ends_with(b"\r\n0\r\n\r\n")
            && memmem::find(&rest, b"[DONE]").is_none()
    })
}

/// Returns the exit status, once the process has ended.
async fn end(gateway: &mut Subject) -> Outcome<Option<i32>> {
    let started = Instant::now();
    loop {
        if let Some(status) = gateway.ended()? {
            return Ok(status.code());
        }
        if started.elapsed() > GRACE {
            return Ok(None);
        }
        sleep(Duration::from_millis(2)).await;
    }
}

/// Determines how long connections were accepted, by trying all the time.
struct Door {
    last_open: Mutex<Instant>,
    closed: AtomicBool,
}

impl Door {
    fn watch(address: std::net::SocketAddr) -> Arc<Self> {
        let door = Arc::new(Self {
            last_open: Mutex::new(Instant::now()),
            closed: AtomicBool::new(false),
        });
        let watched = Arc::clone(&door);
        tokio::spawn(async move {
            loop {
                let before = Instant::now();
                if Connection::open(address).await.is_err() {
                    break;
                }
                *watched
                    .last_open
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = before;
                sleep(Duration::from_millis(1)).await;
            }
            watched.closed.store(true, Ordering::Relaxed);
        });
        door
    }

    fn last_open(&self) -> Instant {
        *self
            .last_open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of clients of each kind.
const CLIENTS: usize = 4;
/// The time for which a gateway serves before it is stopped.
const LIFE: Duration = Duration::from_millis(150);
const LAME_DUCK: Duration = Duration::from_millis(200);
const DRAIN: Duration = Duration::from_millis(1000);
const GRACE: Duration = Duration::from_secs(20);
