//! How often a key may ask, and how often an address may fail to show one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use super::role::Role;
use crate::server::error::ApiError;

/// Failed attempts that one address has a minute before it is told to wait.
const FAILURES: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// Addresses whose failures are counted; beyond them the count starts anew.
const ADDRESSES: usize = 4096;

/// Requests a minute for a key of each role; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// For `public`.
    pub public: u32,
    /// For `reviewer`.
    pub reviewer: u32,
    /// For `operator`.
    pub operator: u32,
}

impl Default for Rates {
    fn default() -> Self {
        // A person who pastes texts never meets these; somebody who asks again and again with a
        // text changed a little, to scrub or forge a mark, does.
        Self { public: 30, reviewer: 1200, operator: 0 }
    }
}

impl Rates {
    fn of(&self, role: Role) -> u32 {
        match role {
            Role::Public => self.public,
            Role::Reviewer => self.reviewer,
            Role::Operator => self.operator,
        }
    }

    /// The limiter of a new key: a minute's requests at once, then one after another.
    pub(super) fn limiter(&self, role: Role) -> Option<Rate> {
        let rate = NonZeroU32::new(self.of(role))?;
        Some(Rate { limiter: RateLimiter::direct(Quota::per_minute(rate)), a_minute: rate })
    }
}

/// The limiter of one key.
#[derive(Debug)]
pub(super) struct Rate {
    limiter: DefaultDirectRateLimiter,
    a_minute: NonZeroU32,
}

impl Rate {
    /// Requests a minute.
    pub(super) fn a_minute(&self) -> NonZeroU32 {
        self.a_minute
    }

    /// Whether the key may ever ask for that many beyond the first.
    pub(super) fn holds(&self, further: NonZeroU32) -> bool {
        further < self.a_minute
    }

    /// Takes `count` from what the key has left.
    ///
    /// # Errors
    /// 429 with the seconds until that many are there again.
    pub(super) fn take(&self, count: NonZeroU32) -> Result<(), ApiError> {
        let wait = match self.limiter.check_n(count) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(wait)) => wait.wait_time_from(DefaultClock::default().now()),
            // More than a minute's requests at once.
            Err(_) => Duration::from_mins(1),
        };
        let message = format!("this key may ask {} times a minute; wait and go on", self.a_minute);
        Err(ApiError::busy("rate_limited", message, seconds(wait)))
    }
}

/// Failed attempts by address.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, DefaultDirectRateLimiter>>);

impl Failures {
    /// Counts a failure; gives the seconds to wait when the address has had too many.
    pub(super) fn count(&self, peer: IpAddr) -> Option<u64> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = network(peer);
        if table.len() >= ADDRESSES && !table.contains_key(&peer) {
            table.clear();
        }
        let limiter =
            table.entry(peer).or_insert_with(|| RateLimiter::direct(Quota::per_minute(FAILURES)));
        let wait = limiter.check().err()?;
        Some(seconds(wait.wait_time_from(DefaultClock::default().now())))
    }
}

/// One customer has a whole /64 of IPv6 addresses.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
