//! What was looked at, and what came of it: a tree of decisions.
//!
//! A path from the root is what one recovery looked at, in its order, with what was there. At
//! equal looks with equal answers all paths that begin alike look at the same next: recovery is
//! deterministic. So where paths part, they part by an answer, and a state is led to its outcome
//! by its own answers.
//!
//! # Invariant
//!
//! A path that looks somewhere else after equal answers contradicts that. It is refused
//! ([`Contradiction`]) and counted: no outcome may be taken from such a tree.

use std::collections::HashMap;

use super::traced::Look;

/// What a look found: a number for each different answer.
pub(super) type Answer = u32;

/// A run of looks without a choice, then what comes after it.
struct LookRun {
    looks: Box<[(Look, Answer)]>,
    then: TrieNode,
}

enum TrieNode {
    /// Number of the outcome.
    Outcome(u32),
    /// A look at which paths part; the number of the run that follows each answer.
    Parting(Look, HashMap<Answer, u32>),
}

/// Equal looks with equal answers were followed by different looks, or outcomes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

/// The tree.
#[derive(Default)]
pub(super) struct Trie {
    runs: Vec<LookRun>,
    /// Looks held in all runs.
    held: usize,
}

impl Trie {
    /// About how many looks it keeps.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// The outcome of whom these answers are given; `None` if none with the same answers was added.
    pub(super) fn find(&self, answer: impl Fn(Look) -> Answer) -> Option<u32> {
        let mut run = self.runs.first()?;
        loop {
            if run.looks.iter().any(|(look, found)| answer(*look) != *found) {
                return None;
            }
            match &run.then {
                TrieNode::Outcome(outcome) => return Some(*outcome),
                TrieNode::Parting(look, ways) => {
                    run = &self.runs[*ways.get(&answer(*look))? as usize]
                }
            }
        }
    }

    /// Adds a path.
    pub(super) fn add(
        &mut self,
        path: &[(Look, Answer)],
        outcome: u32,
    ) -> Result<(), Contradiction> {
        if self.runs.is_empty() {
            self.push(path, TrieNode::Outcome(outcome));
            return Ok(());
        }
        let (mut at, mut left) = (0, path);
        loop {
            let run = &self.runs[at];
            let equal = run.looks.iter().zip(left).take_while(|(a, b)| a == b).count();
            if equal < run.looks.len() {
                let parts = left.get(equal).filter(|(look, _)| *look == run.looks[equal].0);
                let (_, answer) = *parts.ok_or(Contradiction)?;
                self.part(at, equal);
                let new = self.push(&left[equal + 1..], TrieNode::Outcome(outcome));
                if let TrieNode::Parting(_, ways) = &mut self.runs[at].then {
                    ways.insert(answer, new);
                }
                return Ok(());
            }
            left = &left[equal..];
            match &self.runs[at].then {
                TrieNode::Outcome(known) => {
                    return match left.is_empty() && *known == outcome {
                        true => Ok(()),
                        false => Err(Contradiction),
                    };
                }
                TrieNode::Parting(look, ways) => {
                    let ((found, answer), rest) = left.split_first().ok_or(Contradiction)?;
                    if found != look {
                        return Err(Contradiction);
                    }
                    left = rest;
                    match ways.get(answer) {
                        Some(next) => at = *next as usize,
                        None => {
                            let answer = *answer;
                            let new = self.push(left, TrieNode::Outcome(outcome));
                            if let TrieNode::Parting(_, ways) = &mut self.runs[at].then {
                                ways.insert(answer, new);
                            }
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    fn push(&mut self, looks: &[(Look, Answer)], then: TrieNode) -> u32 {
        self.held += looks.len() + 1;
        self.runs.push(LookRun { looks: looks.into(), then });
        self.runs.len() as u32 - 1
    }

    /// Lets a run end before its look `index`, where paths part from now on.
    fn part(&mut self, at: usize, index: usize) {
        let LookRun { looks, then } = std::mem::replace(
            &mut self.runs[at],
            LookRun { looks: Box::default(), then: TrieNode::Outcome(0) },
        );
        let (look, answer) = looks[index];
        self.held -= looks.len() - index;
        let rest = self.push(&looks[index + 1..], then);
        let ways = HashMap::from([(answer, rest)]);
        self.runs[at] =
            LookRun { looks: looks[..index].into(), then: TrieNode::Parting(look, ways) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(looks: &[(u32, Answer)]) -> Vec<(Look, Answer)> {
        looks.iter().map(|(sector, answer)| (Look::contents(*sector), *answer)).collect()
    }

    /// The outcome of a state: what each sector holds.
    fn find(trie: &Trie, state: &[Answer]) -> Option<u32> {
        trie.find(|look| state[look.sector()])
    }

    #[test]
    fn a_state_finds_the_outcome_of_one_with_the_same_answers() {
        let mut trie = Trie::default();
        assert_eq!(find(&trie, &[0, 0, 0]), None);
        trie.add(&path(&[(0, 5), (2, 6)]), 1).unwrap();
        assert_eq!(find(&trie, &[5, 9, 6]), Some(1));
        assert_eq!(find(&trie, &[5, 8, 6]), Some(1));
        assert_eq!(find(&trie, &[5, 9, 7]), None);
        // Another answer: another look after it.
        trie.add(&path(&[(0, 5), (2, 7), (1, 1)]), 2).unwrap();
        trie.add(&path(&[(0, 4)]), 1).unwrap();
        trie.add(&path(&[(0, 3), (1, 1)]), 3).unwrap();
        trie.add(&path(&[(0, 5), (2, 7), (1, 2)]), 4).unwrap();
        trie.add(&path(&[(0, 5), (2, 8)]), 5).unwrap();
        let found = |state: [Answer; 3]| find(&trie, &state);
        assert_eq!(found([5, 9, 6]), Some(1));
        assert_eq!(found([5, 1, 7]), Some(2));
        assert_eq!(found([5, 2, 7]), Some(4));
        assert_eq!(found([5, 3, 7]), None);
        assert_eq!(found([4, 3, 7]), Some(1));
        assert_eq!(found([3, 1, 0]), Some(3));
        assert_eq!(found([3, 2, 0]), None);
        assert_eq!(found([5, 2, 8]), Some(5));
        assert!(trie.held() >= 8);
    }

    #[test]
    fn what_contradicts_is_refused() {
        let mut trie = Trie::default();
        trie.add(&path(&[(0, 5), (2, 6)]), 1).unwrap();
        trie.add(&path(&[(0, 5), (2, 6)]), 1).unwrap();
        for other in [&[(0, 5), (1, 6)][..], &[(0, 5)], &[(0, 5), (2, 6), (3, 1)], &[(1, 5)], &[]] {
            assert_eq!(trie.add(&path(other), 1), Err(Contradiction), "{other:?}");
        }
        assert_eq!(trie.add(&path(&[(0, 5), (2, 6)]), 2), Err(Contradiction));
        trie.add(&path(&[(0, 5), (2, 7)]), 2).unwrap();
        assert_eq!(trie.add(&path(&[(0, 5), (1, 7)]), 2), Err(Contradiction));
        assert_eq!(trie.add(&path(&[(0, 5)]), 2), Err(Contradiction));
    }
}
