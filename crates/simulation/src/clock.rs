//! Clocks of simulated processes: a boot clock with its own offset and rate, a wall clock that steps.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use service_kit::Clock;

use crate::hub::{Ev, Hub};

/// Unix ms at true time 0.
pub const EPOCH_MS: i64 = 1_767_225_600_000;

/// True time of a world, µs; everybody who must see it shares it.
#[derive(Clone, Debug, Default)]
pub struct TrueTime(Arc<AtomicU64>);

impl TrueTime {
    /// Now, µs.
    pub fn us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Moves it on.
    pub fn set(&self, us: u64) {
        self.0.store(us, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Machine {
    boot_offset_us: u64,
    /// Boot µs per million true µs beyond a million.
    rate_ppm: i64,
    wall_offset_ms: AtomicI64,
}

/// Clocks of one machine; they go on while its process is down.
#[derive(Clone)]
pub struct SimClock {
    time: TrueTime,
    machine: Arc<Machine>,
    hub: Hub,
}

impl SimClock {
    /// A machine that was booted `boot_offset_us` before the world began.
    pub fn new(time: TrueTime, hub: Hub, boot_offset_us: u64, rate_ppm: i64) -> Self {
        let machine = Machine { boot_offset_us, rate_ppm, wall_offset_ms: AtomicI64::new(0) };
        Self { time, machine: Arc::new(machine), hub }
    }

    /// Sets how far the wall clock is from true time.
    pub fn set_wall_offset(&self, ms: i64) {
        self.machine.wall_offset_ms.store(ms, Ordering::Relaxed);
    }

    /// True µs at which `boot_ms()` will have reached this.
    pub fn true_us_of(&self, boot_ms: u64) -> u64 {
        let left = (boot_ms.saturating_mul(1_000)).saturating_sub(self.machine.boot_offset_us);
        let per = (1_000_000 + self.machine.rate_ppm) as u128;
        // Rounded up: a sleep is never early.
        let us = (u128::from(left) * 1_000_000).div_ceil(per);
        u64::try_from(us).unwrap_or(u64::MAX)
    }
}

impl Clock for SimClock {
    fn boot_ms(&self) -> u64 {
        let us = self.time.us();
        let own = u128::from(us) * (1_000_000 + self.machine.rate_ppm) as u128 / 1_000_000;
        (self.machine.boot_offset_us + own as u64) / 1_000
    }

    fn wall_ms(&self) -> i64 {
        EPOCH_MS + (self.time.us() / 1_000) as i64 + self.machine.wall_offset_ms.load(Ordering::Relaxed)
    }

    fn sleep_until(&self, boot_ms: u64) -> impl Future<Output = ()> + Send + 'static {
        Sleep { clock: self.clone(), boot_ms, alarm: None }
    }
}

/// What a sleeping future and the event that wakes it share; the event holds it weakly.
#[derive(Debug, Default)]
pub struct Alarm(Mutex<Option<Waker>>);

impl Alarm {
    /// Wakes whoever sleeps, if he still does.
    pub fn ring(alarm: &Weak<Self>) {
        if let Some(waker) = alarm.upgrade().and_then(|a| a.0.lock().take()) {
            waker.wake();
        }
    }
}

struct Sleep {
    clock: SimClock,
    boot_ms: u64,
    alarm: Option<Arc<Alarm>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.clock.boot_ms() >= self.boot_ms {
            return Poll::Ready(());
        }
        match &self.alarm {
            Some(alarm) => *alarm.0.lock() = Some(cx.waker().clone()),
            None => {
                let alarm = Arc::new(Alarm(Mutex::new(Some(cx.waker().clone()))));
                let due = self.clock.true_us_of(self.boot_ms).max(self.clock.time.us() + 1);
                self.clock.hub.at(due, Ev::Ring(Arc::downgrade(&alarm)));
                self.alarm = Some(alarm);
            }
        }
        Poll::Pending
    }
}
