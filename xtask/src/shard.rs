//! A share of a long list, for machines or days that split it.

use std::str::FromStr;

/// One of several equal parts of a list: `3/28`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// The part of a list: every Nth member, so that each part has some of everything.
    pub(crate) fn of<T>(self, all: Vec<T>) -> Vec<T> {
        let members = all.into_iter().skip(self.index);
        members.step_by(self.count).collect()
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    /// Parses `K/N`, where K counts modulo N, so that the day of the year may be K.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            let (index, count): (usize, usize) = (index.parse().ok()?, count.parse().ok()?);
            let index = index.checked_rem(count)?;
            Some(Self { index, count })
        });
        numbers.ok_or("expected K/N, such as 3/28")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_whole() {
        let part = |text: &str| text.parse().map(|shard: Shard| shard.of((0..7).collect()));
        assert_eq!(part("0/3"), Ok(vec![0, 3, 6]));
        assert_eq!(part("4/3"), Ok(vec![1, 4]));
        assert_eq!(part("2/3"), Ok(vec![2, 5]));
        for wrong in ["1/0", "1", "a/2"] {
            assert_eq!(part(wrong), Err("expected K/N, such as 3/28"));
        }
    }
}
