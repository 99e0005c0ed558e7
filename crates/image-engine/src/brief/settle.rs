//! What words come to when they are seen together.

use super::lexicon::{Light, Place, Relation, Thing, Weather};
use super::{Brief, MOST_THINGS, Subject};

/// Turns things that are part of a scene into the scene, and bounds how much there is.
pub(super) fn settle(brief: &mut Brief) {
    let night = brief.shows(Thing::Moon) || brief.has(Place::Space);
    if night && brief.light.is_none() {
        brief.light = Some(Light::Night);
    }
    let starry = brief.light == Some(Light::Night) || brief.has(Place::Sky);
    let is_field = |subject: &Subject| subject.thing == Thing::Star && !subject.counted && subject.count > 1;
    if starry && brief.subjects.iter().any(is_field) {
        drop_subjects(brief, is_field);
        brief.weather.push(Weather::Starry);
    }
    if brief.shows(Thing::Mountain) {
        if !brief.has(Place::Mountains) {
            brief.places.push((Place::Mountains, None));
        }
        drop_subjects(brief, |subject| subject.thing == Thing::Mountain);
    }
    if is_laid(brief) {
        let wood = brief.subjects.iter().find(|subject| subject.thing == Thing::Table);
        let colour = wood.and_then(|table| table.colours.first().copied());
        brief.places.push((Place::Tabletop, colour));
        drop_subjects(brief, |subject| subject.thing == Thing::Table);
    }
    bound(brief);
}

/// Whether something is on a table: then the table is where it is.
fn is_laid(brief: &Brief) -> bool {
    let on_table =
        |(relation, to): (Relation, usize)| relation == Relation::On && brief.subjects[to].thing == Thing::Table;
    brief.subjects.iter().any(|subject| subject.relation.is_some_and(on_table))
}

fn bound(brief: &mut Brief) {
    brief.palette.truncate(8);
    let mut left = MOST_THINGS;
    let mut later = brief.subjects.len() as u32;
    for subject in &mut brief.subjects {
        later -= 1;
        subject.count = subject.count.clamp(1, (left - later).max(1));
        left -= subject.count;
    }
}

/// Leaves subjects out, and what referred to them.
fn drop_subjects(brief: &mut Brief, is_dropped: impl Fn(&Subject) -> bool) {
    let mut kept = 0;
    let moved: Vec<Option<usize>> = brief
        .subjects
        .iter()
        .map(|subject| {
            let stays = !is_dropped(subject);
            kept += usize::from(stays);
            stays.then(|| kept - 1)
        })
        .collect();
    brief.subjects.retain(|subject| !is_dropped(subject));
    for subject in &mut brief.subjects {
        subject.relation = subject.relation.and_then(|(relation, to)| moved[to].map(|to| (relation, to)));
    }
}
