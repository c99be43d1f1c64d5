//! The faults a world can have. Each seed turns a random part of them on (swarm testing): with all
//! of them on at once the interesting coincidences drown.

use crate::rng::Rng;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $ppm:literal;)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// Every kind.
            pub const ALL: &'static [Fault] = &[$(Fault::$name,)*];

            /// Name in tables.
            pub const fn as_str(self) -> &'static str { match self { $(Fault::$name => $text,)* } }

            /// Times in a million chances when it is on.
            const fn base_ppm(self) -> u32 { match self { $(Fault::$name => $ppm,)* } }
        }
    };
}

faults! {
    /// Nothing of a batch was written, and nobody says so.
    UnknownLost = "append unknown, lost", 15_000;
    /// A batch was written, and nobody says so.
    UnknownWritten = "append unknown, written", 20_000;
    /// A batch is written long after its outcome was given up.
    UnknownLate = "append unknown, written later", 10_000;
    /// A first part of a batch was written.
    UnknownPartial = "append unknown, in part", 5_000;
    /// Certainly not sent.
    NotSent = "append not sent", 10_000;
    /// The producer writes a batch again.
    TwiceBatch = "batch written twice", 10_000;
    /// The producer writes one record of a batch again, later.
    TwiceRecord = "record written twice", 10_000;
    /// A batch lands before the one called before it (librdkafka#4953).
    Overtaken = "batch overtakes another", 4_000;
    /// The broker takes its time.
    SlowBroker = "slow broker", 10_000;
    /// Acknowledged long before a reader sees it.
    SlowRead = "slow read-back", 10_000;
    /// A reader delivers offsets twice.
    ReadTwice = "offsets read twice", 20_000;
    /// A reader breaks off.
    ReadError = "reader broke off", 5_000;
    /// An owner in the flow of work is killed; every N-th second (see `mean_us`).
    Crash = "process killed", 1_000_000;
    /// A process stands still.
    Freeze = "process frozen", 1_000_000;
    /// A batch in a frozen process's buffers lands after the thaw.
    LandsAfterThaw = "batch landed after the thaw", 500_000;
    /// A member is declared lost and does not hear of it for a while.
    Zombie = "zombie", 1_000_000;
    /// The group moves partitions around.
    Rebalance = "rebalance", 1_000_000;
    /// A revoked partition is not given back in time.
    RevokeLate = "revocation deadline passed", 1_000_000;
    /// A wall clock steps.
    WallStep = "wall clock stepped", 1_000_000;
    /// Boot clocks run at different rates.
    Skew = "clock rates differ", 1_000_000;
    /// The store is slow.
    StoreSlow = "store slow", 30_000;
    /// The store answers an error although it wrote.
    StoreErrorWritten = "store error though written", 15_000;
    /// The store answers an error and wrote nothing.
    StoreError = "store error", 15_000;
    /// An old write arrives late.
    StoreLate = "old write arrives late", 10_000;
    /// The store is away for a while.
    StoreDown = "store away", 1_000_000;
    /// A chunk of a checkpoint is missing or damaged.
    TornCheckpoint = "torn checkpoint", 250_000;
    /// The lock server is away for a while.
    LockDown = "lock server away", 1_000_000;
    /// All locks are gone.
    LockFlush = "locks lost", 1_000_000;
    /// Somebody else's value is in a lock.
    LockForeign = "foreign lock", 20_000;
    /// A request of a worker or client is lost.
    RequestLost = "request lost", 20_000;
    /// An answer is lost.
    AnswerLost = "answer lost", 20_000;
    /// A worker's request arrives twice.
    RequestTwice = "request doubled", 20_000;
    /// A message takes long, so that others overtake it.
    MessageSlow = "message slow", 30_000;
    /// A worker is killed.
    WorkerCrash = "worker killed", 1_000_000;
    /// A worker stands still.
    WorkerFreeze = "worker frozen", 1_000_000;
    /// Malformed, misplaced or forbidden records by a writer that keeps no rule.
    Rogue = "rogue record", 1_000_000;
}

/// Which faults are on.
#[derive(Clone, Debug)]
pub struct Faults {
    ppm: [u32; Fault::ALL.len()],
    /// Mean pause between faults that come by time, µs.
    pub mean_us: u64,
}

impl Faults {
    /// None.
    pub fn none() -> Self {
        Self { ppm: [0; Fault::ALL.len()], mean_us: 4_000_000 }
    }

    /// Those of a seed.
    pub fn draw(rng: &mut Rng) -> Self {
        let mut ppm = [0; Fault::ALL.len()];
        // Some seeds are calm, some are storms.
        let on = rng.between(100_000, 700_000) as u32;
        for (slot, fault) in ppm.iter_mut().zip(Fault::ALL) {
            if rng.chance(on) {
                *slot = fault.base_ppm();
            }
        }
        Self { ppm, mean_us: rng.between(2_000_000, 6_000_000) }
    }

    /// Times in a million chances.
    pub const fn ppm(&self, fault: Fault) -> u32 {
        self.ppm[fault as usize]
    }

    /// Turns one on as if the seed had drawn it.
    pub fn turn_on(&mut self, fault: Fault) {
        self.ppm[fault as usize] = fault.base_ppm();
    }

    /// Whether it is on.
    pub const fn on(&self, fault: Fault) -> bool {
        self.ppm[fault as usize] > 0
    }
}

/// How often each fault happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally([u64; Fault::ALL.len()]);

impl Default for Tally {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

impl Tally {
    /// Counts one.
    pub fn add(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// How often.
    pub const fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Adds another world's.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a += b);
    }
}
