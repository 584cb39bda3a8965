//! The token ring, which assigns tokens to nodes.
//!
//! Source: Cassandra's `TokenMetadata.firstToken` and `ringIterator`. A token belongs to the node
//! that owns the next token at or after it; after the last token follows the first. A node may own
//! several tokens (virtual nodes).

use super::{MOST_NODES, MOST_TOKENS, NodeId, Token};

/// A node and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Tokens that the node owns.
    pub tokens: Vec<Token>,
    /// Number of the node's data centre.
    pub data_centre: u32,
    /// Number of the node's rack within the data centre.
    pub rack: u32,
}

/// The tokens of all nodes in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    tokens: Vec<(Token, NodeId)>,
    places: Vec<(u32, u32)>,
}

impl Ring {
    /// Returns the ring of these nodes. Their numbers are their positions in `members`.
    ///
    /// # Errors
    /// If a node has no token, two tokens are equal, or the number of nodes or tokens is out of
    /// range.
    pub fn new(members: &[Member]) -> Result<Self, String> {
        if members.is_empty() || members.len() > MOST_NODES {
            return Err(format!(
                "a store must have 1 to {MOST_NODES} nodes, found {} nodes",
                members.len()
            ));
        }
        let count: usize = members.iter().map(|member| member.tokens.len()).sum();
        if count > MOST_TOKENS {
            return Err(format!("a store may have at most {MOST_TOKENS} tokens, found {count}"));
        }
        let mut tokens = Vec::with_capacity(count);
        for (node, member) in members.iter().enumerate() {
            if member.tokens.is_empty() {
                return Err(format!("node {node} has no token"));
            }
            tokens.extend(member.tokens.iter().map(|&token| (token, node as NodeId)));
        }
        tokens.sort_unstable();
        if let Some(twice) = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("two nodes have token {}", twice[0].0));
        }
        let places = members.iter().map(|m| (m.data_centre, m.rack)).collect();
        Ok(Self { tokens, places })
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.places.len()
    }

    /// Returns a node's data centre and rack.
    pub fn place(&self, node: NodeId) -> (u32, u32) {
        self.places[node as usize]
    }

    /// Returns a node's data centre.
    pub fn data_centre(&self, node: NodeId) -> u32 {
        self.places[node as usize].0
    }

    /// Returns the data centres and racks of all nodes, in the order of their numbers.
    pub fn places(&self) -> &[(u32, u32)] {
        &self.places
    }

    /// Returns the owners of all tokens in the order of the ring, beginning with the owner of
    /// `token`. A node appears as often as it owns tokens.
    pub fn walk(&self, token: Token) -> impl Iterator<Item = NodeId> + '_ {
        let first = self.tokens.partition_point(|&(at, _)| at < token);
        let (before, after) = self.tokens.split_at(first);
        after.iter().chain(before).map(|&(_, node)| node)
    }
}

/// Returns the token of node `node` if `nodes` nodes share the ring evenly, as in `nodetool` and
/// Cassandra's documentation: `node * floor(2^64 / nodes) - 2^63`.
pub fn even(node: u32, nodes: u32) -> Token {
    let step = (1u128 << 64) / u128::from(nodes.max(1));
    (step * u128::from(node)) as u64 as i64 ^ i64::MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(tokens: &[&[Token]]) -> Ring {
        let member = |t: &&[Token]| Member { tokens: t.to_vec(), data_centre: 0, rack: 0 };
        Ring::new(&tokens.iter().map(member).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_token_belongs_to_the_next_node() {
        let ring = ring(&[&[0, 20], &[10]]);
        let walk = |token| ring.walk(token).collect::<Vec<_>>();
        assert_eq!(walk(0), [0, 1, 0]);
        assert_eq!(walk(1), [1, 0, 0]);
        assert_eq!(walk(11), [0, 0, 1]);
        assert_eq!(walk(21), [0, 1, 0]);
        assert_eq!(walk(Token::MIN), [0, 1, 0]);
    }

    #[test]
    fn even_tokens_begin_at_the_least_and_are_apart() {
        assert_eq!(even(0, 5), Token::MIN);
        let apart = i128::from(even(3, 5)) - i128::from(even(2, 5));
        assert_eq!(apart, (1i128 << 64) / 5);
        assert_eq!((even(0, 2), even(1, 2)), (Token::MIN, 0));
    }

    #[test]
    fn invalid_rings_are_refused() {
        let member = |tokens: &[Token]| Member { tokens: tokens.to_vec(), data_centre: 0, rack: 0 };
        let fails = |members: &[Member]| Ring::new(members).unwrap_err();
        assert!(fails(&[]).contains("0 nodes"));
        assert!(fails(&[member(&[])]).contains("no token"));
        assert!(fails(&[member(&[7]), member(&[7])]).contains("token 7"));
    }
}
