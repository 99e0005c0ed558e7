//! Resolves words that change their meaning beside others.

use super::lexicon::Relation;
use super::{MOST_THINGS, Prompt, Subject};
use crate::drawing;

/// Turns things that are part of a scene into the scene, and bounds how much there is.
pub(super) fn resolve(prompt: &mut Prompt) {
    let night = prompt.shows("moon") || prompt.has("space");
    if night && prompt.light.is_none() {
        prompt.light = drawing::named("night");
    }
    let starry = prompt.light.is_some_and(|light| light.name == "night") || prompt.has("sky");
    let is_field =
        |subject: &Subject| subject.thing.name == "star" && !subject.counted && subject.count > 1;
    if starry && prompt.subjects.iter().any(is_field) {
        drop_subjects(prompt, is_field);
        prompt.weather.extend(drawing::named("starry"));
    }
    // Something is on a table: then the table is the place.
    let on_table = |(relation, to): (Relation, usize)| {
        relation == Relation::On && is_table(&prompt.subjects[to])
    };
    if prompt
        .subjects
        .iter()
        .any(|subject| subject.relation.is_some_and(on_table))
    {
        let table = prompt.subjects.iter().find(|subject| is_table(subject));
        let colour = table.and_then(|table| table.colours.first().copied());
        prompt
            .places
            .extend(drawing::named("tabletop").map(|place| (place, colour)));
        drop_subjects(prompt, is_table);
    }
    bound(prompt);
}

fn is_table(subject: &Subject) -> bool {
    subject.thing.name == "table"
}

fn bound(prompt: &mut Prompt) {
    prompt.palette.truncate(8);
    let mut left = MOST_THINGS;
    let mut later = prompt.subjects.len() as u32;
    for subject in &mut prompt.subjects {
        later -= 1;
        subject.count = subject.count.clamp(1, (left - later).max(1));
        left -= subject.count;
    }
}

/// Drops subjects, and the relations to them.
fn drop_subjects(prompt: &mut Prompt, is_dropped: impl Fn(&Subject) -> bool) {
    let dropped: Vec<bool> = prompt.subjects.iter().map(&is_dropped).collect();
    let dropped_before = |to: usize| dropped[..to].iter().filter(|dropped| **dropped).count();
    prompt.subjects.retain(|subject| !is_dropped(subject));
    for subject in &mut prompt.subjects {
        let relation = subject.relation.filter(|(_, to)| !dropped[*to]);
        subject.relation = relation.map(|(relation, to)| (relation, to - dropped_before(to)));
    }
}
