//! Patterns of the shell: `*`, `?` and `[...]`.

/// A character of a pattern, and whether it was quoted and so is literal.
pub(super) type Sign = (char, bool);

pub(super) fn signs(text: &str, quoted: bool) -> impl Iterator<Item = Sign> + '_ {
    text.chars().map(move |c| (c, quoted))
}

/// Returns whether a pattern fits the whole text.
pub(super) fn fits(pattern: &[Sign], text: &[char]) -> bool {
    // The position behind the last star, and the text from which it is tried again.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match one(&pattern[p.min(pattern.len())..], text[t]) {
            Some(length) => (p, t) = (p + length, t + 1),
            None if pattern.get(p) == Some(&('*', false)) => {
                star = Some((p + 1, t));
                p += 1;
            }
            None => match star {
                Some((behind, from)) => {
                    (p, t) = (behind, from + 1);
                    star = Some((behind, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p.min(pattern.len())..].iter().all(|sign| *sign == ('*', false))
}

/// Returns the length of the first part of a pattern if it fits a character; `None` otherwise.
fn one(pattern: &[Sign], c: char) -> Option<usize> {
    match pattern.first()? {
        ('*', false) => None,
        ('?', false) => Some(1),
        ('[', false) => {
            let end = pattern.iter().skip(2).position(|sign| *sign == (']', false)).map(|n| n + 2);
            let Some(end) = end else { return (c == '[').then_some(1) };
            let (negated, begin) = match pattern[1] {
                ('!' | '^', false) => (true, 2),
                _ => (false, 1),
            };
            let set: Vec<char> = pattern[begin..end].iter().map(|(c, _)| *c).collect();
            let is_in = (0..set.len()).any(|n| {
                set[n] == c
                    || set.get(n + 1) == Some(&'-')
                        && set.get(n + 2).is_some_and(|last| (set[n]..=*last).contains(&c))
            });
            (is_in != negated).then_some(end + 1)
        }
        (literal, _) => (*literal == c).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, text, expected) in [
            ("eth*", "eth0", true),
            ("*", "", true),
            ("e?h[0-9]", "eth7", true),
            ("e?h[!0-9]", "eth7", false),
            ("a*b*c", "aXXbYbZc", true),
            ("a*b*c", "aXXcYb", false),
            ("[", "[", true),
            ("", "x", false),
        ] {
            let signs: Vec<_> = signs(pattern, false).collect();
            let text: Vec<_> = text.chars().collect();
            assert_eq!(fits(&signs, &text), expected, "{pattern}");
        }
    }
}
