//! Tokens and placements equal those of Cassandra, which are recorded in `tests/cassandra`.

use serde_json::Value;
use sojourn_replication::{Member, Placement, Ring, Token, murmur3};

fn recorded() -> Value {
    serde_json::from_str(include_str!("cassandra/recorded.json")).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn numbers<T: TryFrom<i64>>(value: &Value) -> Vec<T> {
    list(value).iter().map(|v| T::try_from(v.as_i64().unwrap()).ok().unwrap()).collect()
}

#[test]
fn tokens_are_cassandras() {
    let recorded = recorded();
    let tokens = list(&recorded["tokens"]);
    assert!(tokens.len() > 200);
    for case in tokens {
        let (text, token) = (case[0].as_str().unwrap(), case[1].as_i64().unwrap());
        let byte = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
        let key: Vec<u8> = (0..text.len() / 2).map(byte).collect();
        assert_eq!(murmur3::token(&key), token, "{text}");
    }
}

#[test]
fn replicas_are_cassandras() {
    let recorded = recorded();
    let mut cases = 0;
    for (i, ring) in list(&recorded["rings"]).iter().enumerate() {
        let member = |node: &Value| Member {
            tokens: numbers(&node["tokens"]),
            data_centre: node["dc"].as_u64().unwrap() as u32,
            rack: node["rack"].as_u64().unwrap() as u32,
        };
        let members: Vec<Member> = list(&ring["nodes"]).iter().map(member).collect();
        let built = Ring::new(&members).unwrap();
        for case in list(&ring["replicas"]) {
            let placement = match case[0].get("simple") {
                Some(factor) => Placement::Simple { factor: factor.as_u64().unwrap() as u32 },
                None => Placement::NetworkTopology { factors: numbers(&case[0]["topology"]) },
            };
            let token: Token = case[1].as_i64().unwrap();
            let mut found = Vec::new();
            placement.replicas(&built, token, &mut found);
            assert_eq!(found, numbers::<u32>(&case[2]), "ring {i}, {placement:?}, token {token}");
            cases += 1;
        }
    }
    assert!(cases > 300, "{cases}");
}
