//! The coordinator's edge: what comes in by HTTP is parsed and checked here, asked of the owner
//! through the command surface, and answered; nothing is decided here (design.md §2, §8).
