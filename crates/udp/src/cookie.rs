//! Stateless validation of a client's address.
//!
//! A cookie is a keyed hash (SipHash-2-4) of address, connection number and time. A client that can
//! return the cookie receives packets at its claimed address. Before this, the server stores
//! nothing about the client.

use crate::packet::{Cookie, Id};
use siphasher::sip::SipHasher24;
use sojourn_units::{Nanos, SECOND};
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

/// Length of a period in nanoseconds. A cookie is valid in its period and the next one.
const PERIOD: Nanos = 10 * SECOND;

/// Creates and verifies cookies.
#[derive(Clone, Debug)]
pub(crate) struct Baker {
    key: [u8; 16],
}

impl Baker {
    /// Returns a source of cookies. `key` must be random and secret.
    pub(crate) fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    fn bake_at(&self, period: u32, from: SocketAddr, id: Id) -> Cookie {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        (period, from, id).hash(&mut hasher);
        Cookie { period, hash: hasher.finish() }
    }

    pub(crate) fn bake(&self, now: Nanos, from: SocketAddr, id: Id) -> Cookie {
        self.bake_at((now / PERIOD) as u32, from, id)
    }

    pub(crate) fn is_fresh(&self, now: Nanos, from: SocketAddr, id: Id, cookie: Cookie) -> bool {
        let age = ((now / PERIOD) as u32).wrapping_sub(cookie.period);
        age <= 1 && self.bake_at(cookie.period, from, id) == cookie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_holds_for_one_client_and_a_while() {
        let baker = Baker::new([7; 16]);
        let from: SocketAddr = "127.0.0.1:4000".parse().unwrap();
        let cookie = baker.bake(0, from, 5);
        assert!(baker.is_fresh(0, from, 5, cookie));
        assert!(baker.is_fresh(2 * PERIOD - 1, from, 5, cookie));
        assert!(!baker.is_fresh(2 * PERIOD, from, 5, cookie));
        assert!(!baker.is_fresh(0, from, 6, cookie));
        assert!(!baker.is_fresh(0, "127.0.0.1:4001".parse().unwrap(), 5, cookie));
        assert!(!baker.is_fresh(0, "[::1]:4000".parse().unwrap(), 5, cookie));
        assert!(!Baker::new([8; 16]).is_fresh(0, from, 5, cookie));
        let later = Cookie { period: cookie.period + 1, ..cookie };
        assert!(!baker.is_fresh(PERIOD, from, 5, later));
    }
}
