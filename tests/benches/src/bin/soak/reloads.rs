//! A configuration that changes all the time, and is often invalid.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::operator::Operator;
use crate::verdict::Check;
use benches::load::{closed_loop, to_message};
use benches::question::{OTHER, OTHER_PATH, Question, SMALL};
use benches::subject::Subject;
use benches::{Outcome, question, subject};

use crate::Ground;

pub(crate) async fn run(ground: &Ground) -> Outcome<Vec<Check>> {
    let span = Duration::from_secs(if ground.quick { 5 } else { 30 });
    let first = question::configuration(ground.upstream.address, subject::ROOM);
    // The upstream serves this model at this path only, and the others at theirs: mixing two
    // versions would be an error.
    let target = |model: &str| format!("model = \"{model}\" }}]");
    let second = first
        .replace(
            &format!("{}/v1", ground.upstream.address),
            &format!("{}{OTHER_PATH}", ground.upstream.address),
        )
        .replace(&target(SMALL), &target(OTHER));
    let gateway = subject::gateway(&ground.gateway, &first)?;
    let operator = Operator::of(&gateway);
    let (asked, changed) = tokio::join!(
        closed_loop(&gateway, Question::Small, CLIENTS, span),
        change(&gateway, [&first, &second], span)
    );
    let changes = changed?;
    let (taken, refused) = (
        operator
            .sum("sluicegate_config_reloads_total{", "taken")
            .await?,
        operator
            .sum("sluicegate_config_reloads_total{", "refused")
            .await?,
    );
    let failed = operator
        .sum("sluicegate_upstream_failures_total{", "")
        .await?;
    let lost = asked
        .as_ref()
        .err()
        .cloned()
        .unwrap_or_else(|| "none".to_owned());
    Ok(vec![
        Check::info("reloads: files replaced", changes),
        Check::at_least("reloads: accepted", taken, (changes / 6) as f64, ""),
        Check::at_least(
            "reloads: rejected as truncated or invalid",
            refused,
            (changes / 6) as f64,
            "",
        ),
        Check::info("reloads: requests", asked.map_or(0, |done| done.answers)),
        Check::is("reloads: lost requests", &lost, &"none".to_owned()),
        Check::is("reloads: requests with a mix of two files", &failed, &0.0),
    ])
}

/// Installs valid, truncated and invalid files in turn; returns how many.
async fn change(gateway: &Subject, right: [&str; 2], span: Duration) -> Outcome<usize> {
    let path = gateway.config()?;
    let torn = &right[1][..right[1].len() - 10];
    let wrong = right[0].replace("[limits]", "[limits]\ncolour = \"red\"");
    let files = [right[1], torn, right[0], &wrong];
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < span {
        let text = files[count % files.len()];
        // Every other time the file is overwritten in place, as editors do it.
        let is_there = if count % 8 < 4 {
            put(path, text)
        } else {
            fs::write(path, text).map_err(to_message)
        };
        is_there?;
        gateway.signal("HUP")?;
        count += 1;
        sleep(EVERY).await;
    }
    put(path, right[0])?;
    Ok(count)
}

fn put(path: &Path, text: &str) -> Outcome {
    let next = path.with_extension("next");
    fs::write(&next, text)
        .and_then(|()| fs::rename(&next, path))
        .map_err(to_message)
}

const CLIENTS: usize = 8;
const EVERY: Duration = Duration::from_millis(60);
