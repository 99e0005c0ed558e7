//! Blocks: groups of related things that are placed as one.

use crate::prompt::Relation;

/// A group of things: its middle is at 0 across, its foot at 0, and up is negative.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The index of the subject, and the number among its things.
    pub(super) subject: usize,
    pub(super) ordinal: u32,
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) height: f32,
    /// It stands on the floor under the block.
    pub(super) grounded: bool,
}

impl Block {
    pub(super) fn of(subject: usize, ordinal: u32, width: f32, height: f32) -> Self {
        Self {
            width,
            height,
            parts: vec![Part {
                subject,
                ordinal,
                x: 0.0,
                y: 0.0,
                height,
                grounded: true,
            }],
        }
    }

    /// Blocks side by side.
    pub(super) fn row(blocks: Vec<Self>) -> Self {
        let gap = blocks.iter().map(|block| block.width).fold(0.0, f32::max) * 0.14;
        let width = blocks.iter().map(|block| block.width + gap).sum::<f32>() - gap;
        let mut row = Self {
            width: width.max(0.0),
            ..Self::default()
        };
        let mut left = -row.width / 2.0;
        for block in blocks {
            row.height = row.height.max(block.height);
            let middle = left + block.width / 2.0;
            left += block.width + gap;
            row.parts.extend(block.moved(middle, 0.0).parts);
        }
        row
    }

    /// This block with another that has this relation to it. Others stand at the fraction `surface`
    /// of its height.
    pub(super) fn join(self, other: Self, relation: Relation, surface: f32) -> Self {
        let Self { width, height, .. } = self;
        match relation {
            Relation::LeftOf => Self::row(vec![other, self]),
            Relation::RightOf => Self::row(vec![self, other]),
            Relation::Above => self.stack(other.lifted(), height + height.min(30.0) * 0.4),
            Relation::On => self.stack(other.lifted(), height * surface),
            Relation::Below => {
                let lift = other.height + height.min(30.0) * 0.3;
                other.stack(self.lifted(), lift)
            }
            Relation::Inside => {
                let fit = (width * 0.56 / other.width).min(height * 0.56 / other.height);
                let inner = other.scaled(fit).lifted();
                let lift = (height - inner.height) / 2.0;
                self.stack(inner, lift)
            }
            Relation::Behind => other
                .lifted()
                .moved(width * 0.34, -height * 0.16)
                .under(self),
            Relation::Before => self.under(other.moved(-width * 0.3, height * 0.08)),
        }
    }

    pub(super) fn scaled(mut self, by: f32) -> Self {
        self.width *= by;
        self.height *= by;
        for part in &mut self.parts {
            (part.x, part.y, part.height) = (part.x * by, part.y * by, part.height * by);
        }
        self
    }

    fn moved(mut self, across: f32, down: f32) -> Self {
        for part in &mut self.parts {
            part.x += across;
            part.y += down;
        }
        self
    }

    /// The block off the floor, without shadows.
    fn lifted(mut self) -> Self {
        for part in &mut self.parts {
            part.grounded = false;
        }
        self
    }

    /// This block with the foot of another so high above its own.
    fn stack(self, other: Self, lift: f32) -> Self {
        let height = self.height.max(lift + other.height);
        Self {
            height,
            ..self.under(other.moved(0.0, -lift))
        }
    }

    /// Both in one, the other drawn later.
    fn under(mut self, other: Self) -> Self {
        self.width = self.width.max(other.width);
        self.height = self.height.max(other.height);
        self.parts.extend(other.parts);
        self
    }
}
