//! Breadth first over every world a configuration can reach. The first law broken is broken by a
//! shortest history.
#![expect(clippy::wildcard_enum_match_arm, reason = "most moves say themselves")]

use crate::audit::Audit;
use crate::config::Config;
use crate::fold::Fold;
use crate::history::{Trouble, play, tell};
use crate::lab::Lab;
use crate::liveness::stuck;
use crate::moves::{Move, Moves, Next};
use crate::world::World;

/// A law broken, and how it came to that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The law.
    pub what: String,
    /// Records in the order they landed: paste it into a test.
    pub history: String,
    /// Who did what, in order, from the end of the history the search started from.
    pub story: Vec<String>,
}

impl Finding {
    /// Records that landed.
    pub fn records(&self) -> usize {
        self.history.split('|').count()
    }
}

/// What became of a search.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Worlds seen.
    pub states: usize,
    /// Ways from one to another.
    pub steps: usize,
    /// Whether every reachable world was seen.
    pub complete: bool,
    /// The first law broken.
    pub found: Option<Finding>,
}

/// Searches a configuration until a law is broken, everything was seen, or `limit` worlds were.
pub fn search(lab: &mut Lab, config: &Config, limit: usize) -> Outcome {
    let mut run = Run { lab, config, nodes: Vec::new(), seen: hashbrown::HashSet::default(), steps: 0 };
    let (found, complete) = match run.roots() {
        Ok(roots) => run.levels(&roots, limit),
        Err(found) => (Some(found), false),
    };
    Outcome { states: run.seen.len().max(1), steps: run.steps, complete, found }
}

// How a world was first reached: from which one, by which of its moves.
#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    by: u16,
}

struct Run<'a> {
    lab: &'a mut Lab,
    config: &'a Config,
    nodes: Vec<Node>,
    seen: hashbrown::HashSet<u128, foldhash::fast::FixedState>,
    steps: usize,
}

impl Run<'_> {
    fn roots(&mut self) -> Result<Vec<World>, Finding> {
        let (fold, audit) = (self.lab.fold_id(&Fold::default()), self.lab.audit_id(&Audit::default()));
        let mut roots = Vec::new();
        for seed in &self.config.seeds {
            let start = World::new(fold, audit, self.config.budget);
            let world = play(self.lab, start, seed).map_err(|trouble| match trouble {
                Trouble::Unreadable(text) => panic!("seed of {}: {text}", self.config.name),
                Trouble::Unexpected { history, got } => {
                    let what = format!("lost ability: the last record of an honest history is {got}");
                    Finding { what, history, story: Vec::new() }
                }
                Trouble::Broken { history, what } => Finding { what, history, story: Vec::new() },
            })?;
            roots.push(world);
        }
        Ok(roots)
    }

    fn levels(&mut self, roots: &[World], limit: usize) -> (Option<Finding>, bool) {
        let mut level: Vec<(u32, World)> = Vec::new();
        for (n, root) in roots.iter().enumerate() {
            self.nodes.push(Node { parent: u32::MAX, by: n as u16 });
            if self.seen.insert(root.fingerprint()) {
                level.push((n as u32, *root));
            }
        }
        let (mut below, mut out) = (Vec::new(), Vec::new());
        let mut left = self.config.depth.unwrap_or(usize::MAX);
        while !level.is_empty() && left > 0 {
            left -= 1;
            for (node, world) in level.drain(..) {
                if let Some((what, refused)) = stuck(self.lab, world.fold) {
                    return (Some(self.finding(roots, node, None, what, refused)), false);
                }
                out.clear();
                Moves { lab: self.lab, config: self.config, out: &mut out, rival: false }.of(&world);
                self.steps += out.len();
                for (by, next) in out.drain(..).enumerate() {
                    let forgiven = |what: &String| self.config.forgive.is_some_and(|law| what.ends_with(law));
                    if let Some(what) = next.broken.filter(|what| !forgiven(what)) {
                        return (Some(self.finding(roots, node, Some(by), what, None)), false);
                    }
                    if self.seen.insert(next.world.fingerprint()) {
                        below.push((self.nodes.len() as u32, next.world));
                        self.nodes.push(Node { parent: node, by: by as u16 });
                    }
                }
                if self.seen.len() > limit {
                    return (None, false);
                }
            }
            std::mem::swap(&mut level, &mut below);
        }
        (None, true)
    }

    // Walks the way again, this time writing it down.
    fn finding(
        &mut self,
        roots: &[World],
        node: u32,
        last: Option<usize>,
        what: String,
        refused: Option<u32>,
    ) -> Finding {
        let mut way: Vec<usize> = last.into_iter().collect();
        let mut at = self.nodes[node as usize];
        while at.parent != u32::MAX {
            way.push(usize::from(at.by));
            at = self.nodes[at.parent as usize];
        }
        let root = usize::from(at.by);
        let mut world = roots[root];
        let mut history = vec![self.config.seeds[root].to_owned()];
        let mut story = Vec::new();
        let mut base = 0;
        for by in way.into_iter().rev() {
            let mut out: Vec<Next> = Vec::new();
            Moves { lab: self.lab, config: self.config, out: &mut out, rival: false }.of(&world);
            let next = out.swap_remove(by);
            if let Move::Land { record, .. } | Move::Rogue { record } = next.by {
                history.push(tell(self.lab, world.fold, world.audit, record, base));
                base = self.base(&world, record, &next.world, base);
            }
            story.push(self.describe(&world, &next.by));
            let mut at = world.fold;
            for record in next.refused {
                history.push(tell(self.lab, at, world.audit, record, base));
                at = self.lab.land(at, record).fold;
            }
            world = next.world;
        }
        if let Some(record) = refused {
            history.push(tell(self.lab, world.fold, world.audit, record, base));
        }
        history.retain(|h| !h.is_empty());
        Finding { what, history: history.join(" | "), story }
    }

    // Settled worlds count owner_seq anew from 0; a history says what it really was.
    fn base(&mut self, before: &World, record: u32, after: &World, base: u64) -> u64 {
        let landed = self.lab.land(before.fold, record).fold;
        let base = if self.lab.fold(landed).epoch == self.lab.fold(before.fold).epoch { base } else { 0 };
        base + self.lab.fold(landed).owner_seq.0.saturating_sub(self.lab.fold(after.fold).owner_seq.0)
    }

    fn describe(&mut self, world: &World, by: &Move) -> String {
        match by {
            Move::Write { cmd, frozen: false, rival: false } => format!("{cmd:?}"),
            Move::Write { cmd, rival: true, .. } => format!("{cmd:?} by a claimant who lost"),
            Move::Write { cmd, .. } => format!("{cmd:?} by somebody whose state is old"),
            Move::Land { record, stays } => {
                let told = tell(self.lab, world.fold, world.audit, *record, 0);
                format!("lands: {told}{}", if *stays { " (a copy is still to come)" } else { "" })
            }
            Move::Rogue { record } => format!("rogue: {}", tell(self.lab, world.fold, world.audit, *record, 0)),
            Move::Lose { record } => format!("lost: {}", self.lab.brief(*record).kind),
            other => format!("{other:?}"),
        }
    }
}
