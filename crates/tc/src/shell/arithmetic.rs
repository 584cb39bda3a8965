//! Arithmetic expressions, with the operators of C.

use super::value::{Origins, Value, Variables};

/// Largest depth of nested expressions.
const DEPTH: u32 = 50;
const OPERATORS: [&str; 33] = [
    "<<=", ">>=", "**", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=",
    "*=", "/=", "%=", "&=", "|=", "^=", "+", "-", "*", "/", "%", "<", ">", "&", "|", "^", "=", "?",
];
const SIGNS: [&str; 6] = ["~", "!", "(", ")", ":", ","];
/// Binary operators by rising precedence.
const LEVELS: [&[&str]; 11] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
    &["**"],
];

/// Returns the value of an expression; unset variables are 0. `origins` gets the origins of the
/// variables.
pub(super) fn evaluate(
    text: &str,
    variables: &mut Variables,
    origins: &mut Origins,
) -> Result<i64, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, variables, origins };
    if tokens.is_empty() {
        return Ok(0);
    }
    let mut value = parser.assignment()?;
    while parser.take(",") {
        value = parser.assignment()?;
    }
    match parser.tokens.get(parser.at) {
        None => Ok(value),
        Some(token) => Err(format!("`{token}` is not allowed here in `{text}`")),
    }
}

/// Reads a whole number as the shell does: hexadecimal after `0x`, octal after `0`.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let read = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8),
        None => match digits.split_once('#') {
            Some((base, digits)) => {
                let base = base.parse().ok().filter(|base| (2..=36).contains(base));
                i64::from_str_radix(digits, base.unwrap_or(10))
            }
            None => digits.parse(),
        },
    };
    read.ok()
        .and_then(|value| value.checked_mul(sign))
        .ok_or_else(|| format!("`{text}` is not a whole number"))
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | '.');
        let length = if is_part(c) {
            rest.find(|c| !is_part(c)).unwrap_or(rest.len())
        } else {
            let operators = OPERATORS.iter().chain(&SIGNS);
            let known = operators.copied().find(|op| rest.starts_with(op));
            known.map(str::len).ok_or_else(|| format!("`{c}` is not allowed in `{text}`"))?
        };
        found.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

struct Parser<'a> {
    tokens: &'a [String],
    at: usize,
    depth: u32,
    variables: &'a mut Variables,
    origins: &'a mut Origins,
}

impl Parser<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.peek() == token;
        self.at += usize::from(is_next);
        is_next
    }

    fn name(&self) -> Option<String> {
        let token = self.peek();
        let first = token.chars().next()?;
        (first.is_alphabetic() || first == '_').then(|| token.to_owned())
    }

    fn assignment(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("an expression is nested too deeply".to_owned());
        }
        let start = self.at;
        if let Some(name) = self.name() {
            self.at += 1;
            let operator = self.peek().to_owned();
            if operator == "="
                || operator.len() > 1
                    && operator.ends_with('=')
                    && operator != "=="
                    && !matches!(operator.as_str(), "<=" | ">=" | "!=")
            {
                self.at += 1;
                let old = if operator == "=" { 0 } else { self.variable(&name)? };
                let right = self.assignment()?;
                let value = match operator.trim_end_matches('=') {
                    "" => right,
                    operator => apply(operator, old, right)?,
                };
                self.put(&name, value);
                self.depth -= 1;
                return Ok(value);
            }
            self.at = start;
        }
        let condition = self.binary(0)?;
        let value = if self.take("?") {
            let yes = self.assignment()?;
            if !self.take(":") {
                return Err("`:` is missing in an expression".to_owned());
            }
            let no = self.assignment()?;
            if condition != 0 { yes } else { no }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, level: usize) -> Result<i64, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while operators.contains(&self.peek()) {
            let operator = self.peek().to_owned();
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = apply(&operator, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i64, String> {
        let token = self.peek().to_owned();
        self.at += 1;
        match token.as_str() {
            "-" => Ok(self.unary()?.wrapping_neg()),
            "+" => self.unary(),
            "!" => Ok(i64::from(self.unary()? == 0)),
            "~" => Ok(!self.unary()?),
            "++" | "--" => {
                let name = self.name().ok_or("a variable is missing in an expression")?;
                self.at += 1;
                let value = self.variable(&name)? + if token == "++" { 1 } else { -1 };
                self.put(&name, value);
                Ok(value)
            }
            "(" => {
                let mut value = self.assignment()?;
                while self.take(",") {
                    value = self.assignment()?;
                }
                if self.take(")") { Ok(value) } else { Err("`)` is missing".to_owned()) }
            }
            "" => Err("an expression ends too early".to_owned()),
            _ => {
                self.at -= 1;
                let Some(name) = self.name() else {
                    self.at += 1;
                    return integer(&token);
                };
                self.at += 1;
                let value = self.variable(&name)?;
                let step = i64::from(self.peek() == "++") - i64::from(self.peek() == "--");
                if step != 0 {
                    self.at += 1;
                    self.put(&name, value + step);
                }
                Ok(value)
            }
        }
    }

    fn variable(&mut self, name: &str) -> Result<i64, String> {
        let value = self.variables.need(name);
        self.origins.add(&value.origins);
        if value.text.trim().is_empty() || !value.origins.unknown.is_empty() {
            return Ok(0);
        }
        integer(&value.text)
    }

    fn put(&mut self, name: &str, value: i64) {
        // In `n = n + 1` an unset `n` counts as 0, and the assignment gives it a value.
        self.origins.missing.retain(|missing| missing != name);
        self.variables.put(name, Value::new(value.to_string(), self.origins.clone()));
    }
}

fn apply(operator: &str, a: i64, b: i64) -> Result<i64, String> {
    let truth = i64::from;
    Ok(match operator {
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => return Err("a division by zero".to_owned()),
        "/" => a.wrapping_div(b),
        "%" => a.wrapping_rem(b),
        "**" => {
            u32::try_from(b).ok().and_then(|b| a.checked_pow(b)).ok_or("a power is too large")?
        }
        "<<" => a.wrapping_shl(b as u32),
        ">>" => a.wrapping_shr(b as u32),
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "<" => truth(a < b),
        "<=" => truth(a <= b),
        ">" => truth(a > b),
        ">=" => truth(a >= b),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "&&" => truth(a != 0 && b != 0),
        _ => truth(a != 0 || b != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn expressions_have_the_values_of_c() {
        let mut variables = Variables::new(&BTreeMap::from([("UP".to_owned(), "20".to_owned())]));
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("UP * 95 / 100", 19),
            ("2 ** 3 - 1", 7),
            ("n = 5, n += 2, n++", 7),
            ("n", 8),
            ("UP > 10 ? 1 : 2", 1),
            ("0x10 + 010", 24),
            ("-3 % 2", -1),
            ("!0 && ~0", 1),
            ("", 0),
        ] {
            let value = evaluate(text, &mut variables, &mut Origins::default());
            assert_eq!(value, Ok(expected), "{text}");
        }
        for wrong in ["1 /0", "1 +", "(1", "1 2", "$", "5x"] {
            assert!(evaluate(wrong, &mut variables, &mut Origins::default()).is_err(), "{wrong}");
        }
    }
}
