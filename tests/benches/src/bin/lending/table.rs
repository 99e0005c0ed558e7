//! The table of the figures.

/// A figure with its goal.
pub(crate) struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    goal: Option<Goal>,
}

/// A bound of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
}

impl Figure {
    pub(crate) fn of(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self {
            name,
            value,
            unit,
            goal: None,
        }
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    fn line(&self) -> String {
        let Self {
            name, value, unit, ..
        } = self;
        let verdict = self.goal.map_or_else(String::new, |Goal::AtMost(most)| {
            let verdict = if *value <= most { "met" } else { "missed" };
            format!("≤ {}: {verdict}", number(most))
        });
        format!("| {name} | {} {unit} | {verdict} |\n", number(*value))
    }
}

pub(crate) fn table(figures: &[Figure]) -> String {
    let lines = figures.iter().map(Figure::line);
    HEAD.to_owned() + &lines.collect::<String>()
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        small if small < 1.0 => format!("{value:.4}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

const HEAD: &str = "| figure | value | goal |\n|---|---:|---|\n";
