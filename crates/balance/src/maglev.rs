//! Maglev's consistent hashing, with a table that the servers fill in turns.
//!
//! Each server visits the M entries of the table in its own order (`offset + j skip mod M`, where
//! offset and skip depend on the server's hash). The N servers take turns, and in each turn a
//! server takes its next free entry. Therefore each server gets floor(M/N) or ceil(M/N) entries,
//! and the removal of a server changes few other entries. With weights, the number of a server's
//! turns is proportional to its weight, as in Envoy.

use crate::contract::{Policy, PolicyParams, Request};
use crate::facts::mix;
use crate::needs::{Needs, Signal};
use crate::pick::{Pick, Reason};
use crate::view::Servers;
use sojourn_units::declare::Param;
use sojourn_units::params;
use sojourn_units::words::{Kind, Value};

/// Maximum number of entries in the table.
const MOST: u64 = 5_000_011;

params! {
    "maglev": "by a table of hashes: few flows change servers when a server goes down",
    from "Eisenbud et al., NSDI 2016, section 3.4; weights as Envoy's";

    /// Size of the table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Number of entries in the table. It must be a prime, and should be much larger than the
        /// number of servers.
        table: u64 = Param::word(
            Kind::Integer { min: 2, max: MOST },
            "65537",
            |value| prime(value.integer()),
            |table| Some(Value::Text(table.to_string())),
        ),
    }
}

impl PolicyParams for Params {
    type Policy = Maglev;

    fn needs(&self) -> Needs {
        Needs::weighted(Signal::Nothing)
    }

    fn build(&self, _servers: usize, _key: u64) -> Maglev {
        Maglev { table: vec![FREE; self.table as usize] }
    }
}

fn is_prime(n: u64) -> bool {
    n >= 2 && (2..=n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

fn prime(n: u64) -> Result<u64, String> {
    if is_prime(n) {
        return Ok(n);
    }
    let next = (n..=MOST).find(|&n| is_prime(n)).unwrap_or(MOST);
    Err(format!(
        "must be a prime, since otherwise some entries cannot be reached; the next prime is {next}"
    ))
}

/// Value of an entry without a server.
const FREE: u16 = u16::MAX;

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct Maglev {
    table: Vec<u16>,
}

/// State of a server while the table is filled.
struct Claimant {
    server: u16,
    place: u64,
    skip: u64,
    weight: u64,
    /// Number of turns that the server has taken, times the greatest weight.
    spent: u64,
}

impl Maglev {
    /// Returns the number of entries of each of `servers` servers.
    pub fn shares(&self, servers: usize) -> Vec<usize> {
        let mut shares = vec![0; servers];
        for &server in self.table.iter().filter(|&&server| server != FREE) {
            shares[server as usize] += 1;
        }
        shares
    }
}

impl Policy for Maglev {
    type View = ();

    fn choose(&mut self, Request { flow, .. }: Request<'_, ()>) -> Option<Pick> {
        let place = flow.hash % self.table.len() as u64;
        let server = self.table[place as usize];
        (server != FREE).then_some((usize::from(server), Reason::Hashed))
    }

    fn changed(&mut self, servers: &Servers<'_, ()>) {
        let size = self.table.len() as u64;
        self.table.fill(FREE);
        let mut claimants: Vec<Claimant> = servers
            .up()
            .map(|i| Claimant {
                server: i as u16,
                place: mix(servers.id(i)) % size,
                skip: mix(servers.id(i) ^ 0x9E37_79B9_7F4A_7C15) % (size - 1) + 1,
                weight: u64::from(servers.weight(i)),
                spent: 0,
            })
            .collect();
        // Sort by identifier, so that the table does not depend on the order of the servers.
        claimants.sort_by_key(|c| (servers.id(usize::from(c.server)), c.server));
        let Some(heaviest) = claimants.iter().map(|c| c.weight).max() else { return };
        let mut free = size;
        for round in 1u64.. {
            for claimant in &mut claimants {
                if round.saturating_mul(claimant.weight) <= claimant.spent {
                    continue;
                }
                claimant.spent += heaviest;
                while self.table[claimant.place as usize] != FREE {
                    claimant.place = (claimant.place + claimant.skip) % size;
                }
                self.table[claimant.place as usize] = claimant.server;
                free -= 1;
                if free == 0 {
                    return;
                }
            }
        }
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        let servers = self.table.iter().filter(|&&s| s != FREE).max();
        let shares = self.shares(servers.map_or(0, |&most| usize::from(most) + 1));
        for (i, share) in shares.into_iter().enumerate() {
            visit(i, "share", share as f64 / self.table.len() as f64);
        }
    }
}
