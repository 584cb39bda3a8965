//! Builtins of the shell, and simple programs whose output is computed.

use super::evaluate::{Host, Shell, Stop};
use super::expand::next_field;
use super::value::{Origins, Value};
use super::{arithmetic, test};

/// Largest number of values that `seq` produces.
const NUMBERS: i64 = 10_000;

type Result<T> = std::result::Result<T, Stop>;

impl<H: Host> Shell<'_, H> {
    /// Runs a builtin; returns whether the command is one.
    pub(super) fn builtin(&mut self, words: &[String], origins: &Origins) -> Result<bool> {
        let Some((name, rest)) = words.split_first() else { return Ok(false) };
        let before = self.variables.status;
        self.variables.status = 0;
        match name.as_str() {
            ":" | "true" | "type" | "trap" | "alias" | "umask" | "wait" | "hash" | "ulimit"
            | "shopt" => {}
            "false" | "getopts" => self.variables.status = 1,
            "test" => self.tested(rest)?,
            "[" => self.tested(rest.strip_suffix(&["]".to_owned()]).unwrap_or(rest))?,
            "echo" => self.echo(rest, origins)?,
            "printf" => self.printf(rest, origins)?,
            "export" | "readonly" | "declare" | "typeset" | "local" => {
                self.declared(name, rest, origins);
            }
            "unset" => {
                for name in rest {
                    self.variables.unset(name);
                    self.functions.remove(name);
                }
            }
            "set" => self.set(rest, origins),
            "shift" => {
                let count = self.integer(rest.first(), 1)?.max(0) as usize;
                let positional = &mut self.variables.positional;
                self.variables.status = i64::from(count > positional.len());
                positional.drain(..count.min(positional.len()));
            }
            "exit" => return Err(Stop::Exit),
            "return" => {
                let status = self.integer(rest.first(), before)?;
                self.variables.status = status & 255;
                return Err(Stop::Return);
            }
            "break" | "continue" => {
                let loops = self.integer(rest.first(), 1)?;
                return Err(Stop::Leave { loops, goes_on: name == "continue" });
            }
            "eval" => self.evaluate(&rest.join(" "))?,
            "." | "source" => {
                if let Some(file) = rest.first() {
                    self.source(file)?;
                }
            }
            "command" | "builtin" | "exec" => match rest.first().map(String::as_str) {
                Some("-v" | "-V") => self.write_lines(&rest[1..], origins)?,
                Some(_) => return Ok(false),
                None => {}
            },
            "which" => self.write_lines(rest, origins)?,
            "let" => {
                for word in rest {
                    let mut own = origins.clone();
                    let number = arithmetic::evaluate(word, &mut self.variables, &mut own);
                    self.variables.status = i64::from(number.map_err(|why| self.doubt(why))? == 0);
                }
            }
            "expr" => self.expr(rest, origins)?,
            "seq" => self.seq(rest, origins)?,
            "cat" => self.cat(rest)?,
            "read" => self.read_line(rest),
            "basename" => {
                let name = rest.first().map(|word| word.trim_end_matches('/'));
                let name = name.and_then(|word| word.rsplit('/').next()).unwrap_or("");
                self.write(&format!("{name}\n"), origins)?;
            }
            "cut" => self.cut(rest)?,
            "bc" => self.bc()?,
            _ => {
                self.variables.status = before;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn integer(&mut self, word: Option<&String>, default: i64) -> Result<i64> {
        let read = word.map_or(Ok(default), |word| arithmetic::integer(word));
        read.map_err(|why| self.doubt(why))
    }

    fn tested(&mut self, words: &[String]) -> Result<()> {
        let holds = test::holds(words, None).map_err(|why| self.doubt(why))?;
        self.variables.status = i64::from(!holds);
        Ok(())
    }

    fn write_lines(&mut self, words: &[String], origins: &Origins) -> Result<()> {
        let plain = words.iter().filter(|word| !word.starts_with('-'));
        let lines: Vec<String> = plain.map(|word| format!("{word}\n")).collect();
        self.write(&lines.concat(), origins)
    }

    fn echo(&mut self, words: &[String], origins: &Origins) -> Result<()> {
        let is_option = |word: &&String| {
            word.len() > 1
                && word.starts_with('-')
                && word[1..].bytes().all(|b| b"neE".contains(&b))
        };
        let options: Vec<&String> = words.iter().take_while(is_option).collect();
        let has = |letter| options.iter().any(|word| word.contains(letter));
        let mut text = words[options.len()..].join(" ");
        if has('e') {
            text = escaped(&text);
        }
        if !has('n') {
            text.push('\n');
        }
        self.write(&text, origins)
    }

    fn printf(&mut self, words: &[String], origins: &Origins) -> Result<()> {
        match words {
            [option, name, form, values @ ..] if option == "-v" => {
                let text = self.formatted(form, values)?;
                self.variables.put(name, Value::new(text, origins.clone()));
                Ok(())
            }
            [form, values @ ..] => {
                let text = self.formatted(form, values)?;
                self.write(&text, origins)
            }
            [] => Ok(()),
        }
    }

    fn formatted(&mut self, form: &str, values: &[String]) -> Result<String> {
        let form = escaped(form);
        let mut left = values.iter();
        let mut found = String::new();
        loop {
            let before = left.len();
            let mut chars = form.chars().peekable();
            while let Some(c) = chars.next() {
                if c != '%' {
                    found.push(c);
                    continue;
                }
                let spec: String = std::iter::from_fn(|| {
                    chars.next_if(|c| c.is_ascii_digit() || "-+ 0#.".contains(*c))
                })
                .collect();
                let kind = chars.next().unwrap_or('%');
                if kind == '%' {
                    found.push('%');
                    continue;
                }
                let value = left.next().map_or("", String::as_str);
                let text = match kind {
                    's' => value.to_owned(),
                    'b' => escaped(value),
                    'c' => value.chars().take(1).collect(),
                    _ => {
                        let number = match value.trim() {
                            "" => 0,
                            value => arithmetic::integer(value).map_err(|why| self.doubt(why))?,
                        };
                        match kind {
                            'x' => format!("{number:x}"),
                            'X' => format!("{number:X}"),
                            'o' => format!("{number:o}"),
                            _ => number.to_string(),
                        }
                    }
                };
                let width: usize = spec
                    .trim_start_matches(['-', '+', ' ', '#'])
                    .split('.')
                    .next()
                    .and_then(|digits| digits.parse().ok())
                    .unwrap_or(0)
                    .min(999);
                let text = match () {
                    () if spec.contains('-') => format!("{text:<width$}"),
                    () if spec.starts_with('0') && !matches!(kind, 's' | 'b' | 'c') => {
                        format!("{text:0>width$}")
                    }
                    () => format!("{text:>width$}"),
                };
                found.push_str(&text);
            }
            if left.len() == 0 || left.len() == before {
                return Ok(found);
            }
            if found.len() > super::value::LENGTH {
                return Err(self.too_much("the output of `printf` is too long"));
            }
        }
    }

    /// Sets the variables that `export`, `readonly`, `declare` or `local` name.
    fn declared(&mut self, name: &str, words: &[String], origins: &Origins) {
        let is_local = matches!(name, "declare" | "typeset" | "local");
        let is_map = words.iter().any(|word| word.starts_with('-') && word.contains('A'));
        for word in words.iter().filter(|word| !word.starts_with('-')) {
            let (name, text) = match word.split_once('=') {
                Some((name, text)) => (name, Some(text)),
                None => (word.as_str(), None),
            };
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                continue;
            }
            if is_map {
                self.maps.insert(name.to_owned());
            }
            if is_local {
                self.variables.local(name);
            }
            if let Some(text) = text {
                self.variables.put(name, Value::new(text, origins.clone()));
            }
        }
    }

    fn set(&mut self, words: &[String], origins: &Origins) {
        let mut rest = words;
        while let Some((first, others)) = rest.split_first() {
            if first == "--" || !first.starts_with(['-', '+']) || first.len() < 2 {
                break;
            }
            rest = if first.ends_with('o') { others.get(1..).unwrap_or(&[]) } else { others };
        }
        let values = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
        if !rest.is_empty() {
            let value = |text: &String| Value::new(text.clone(), origins.clone());
            self.variables.positional = values.iter().map(value).collect();
        }
    }

    fn expr(&mut self, words: &[String], origins: &Origins) -> Result<()> {
        let known = ["+", "-", "*", "/", "%", "(", ")", "<", ">", "<=", ">=", "=", "!=", "&", "|"];
        let is_number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
        if !words.iter().all(|word| known.contains(&word.as_str()) || is_number(word)) {
            self.write_unknown(&format!("expr {}", words.join(" ")));
            return Ok(());
        }
        let text: Vec<&str> =
            words.iter().map(|word| if word == "=" { "==" } else { word }).collect();
        let mut own = Origins::default();
        let number = arithmetic::evaluate(&text.join(" "), &mut self.variables, &mut own);
        let number = number.map_err(|why| self.doubt(why))?;
        self.variables.status = i64::from(number == 0);
        self.write(&format!("{number}\n"), origins)
    }

    fn seq(&mut self, words: &[String], origins: &Origins) -> Result<()> {
        let numbers: std::result::Result<Vec<i64>, String> =
            words.iter().map(|word| arithmetic::integer(word)).collect();
        let numbers = numbers.map_err(|why| self.doubt(why))?;
        let (first, step, last) = match numbers.as_slice() {
            [last] => (1, 1, *last),
            [first, last] => (*first, 1, *last),
            [first, step, last] if *step != 0 => (*first, *step, *last),
            _ => return Ok(()),
        };
        if (last - first) / step > NUMBERS {
            return Err(self.too_much(&format!("`seq` produces more than {NUMBERS} numbers")));
        }
        let mut text = String::new();
        let mut number = first;
        while if step > 0 { number <= last } else { number >= last } {
            text.push_str(&number.to_string());
            text.push('\n');
            number += step;
        }
        self.write(&text, origins)
    }

    fn cat(&mut self, words: &[String]) -> Result<()> {
        let names: Vec<&str> =
            words.iter().map(String::as_str).filter(|w| *w == "-" || !w.starts_with('-')).collect();
        let names = if names.is_empty() { vec!["-"] } else { names };
        for name in names {
            let text = if name == "-" { self.stdin() } else { self.files.get(name).cloned() };
            let Some(text) = text else {
                self.write_unknown(&format!("cat {}", words.join(" ")));
                return Ok(());
            };
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            self.write(&format!("{text}{end}"), &Origins::default())?;
        }
        Ok(())
    }

    fn read_line(&mut self, words: &[String]) {
        let is_name = |word: &&String| word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let names: Vec<&String> = words.iter().filter(is_name).collect();
        let Some(line) = self.next_line() else {
            self.variables.status = 1;
            return;
        };
        let separators = self.separators();
        let blank = |c: char| c.is_whitespace() && separators.contains(c);
        let mut rest = line.trim_matches(blank);
        for (n, name) in names.iter().enumerate() {
            let whole = (rest.trim_start_matches(blank), "");
            let is_last = n + 1 == names.len();
            let next = next_field(rest, &separators).filter(|_| !is_last);
            let (word, others) = next.unwrap_or(whole);
            self.variables.put(name, Value::of(word));
            rest = others;
        }
    }

    /// Writes a field of each line, as `cut -d. -f1` does, for example a part of an address.
    fn cut(&mut self, words: &[String]) -> Result<()> {
        let joined = words.join(" ");
        let option = |letter: char| {
            let at = joined.find(&format!("-{letter}"))?;
            let value = joined[at + 2..].trim_start_matches(' ');
            Some(value.split(' ').next().unwrap_or("").to_owned())
        };
        let mark = option('d').and_then(|text| text.chars().next()).unwrap_or('\t');
        let field = option('f').and_then(|text| text.parse::<usize>().ok());
        let (Some(field), Some(text)) = (field.filter(|field| *field > 0), self.stdin()) else {
            self.write_unknown(&format!("cut {joined}"));
            return Ok(());
        };
        for line in text.lines() {
            let part = line.split(mark).nth(field - 1).unwrap_or("");
            self.write(&format!("{part}\n"), &Origins::default())?;
        }
        Ok(())
    }

    /// Computes the whole numbers of `echo "EXPRESSION" | bc`.
    fn bc(&mut self) -> Result<()> {
        let text = self.stdin().unwrap_or_default();
        let expression =
            text.lines().last().unwrap_or("").rsplit(';').next().unwrap_or("").to_owned();
        let mut own = Origins::default();
        let is_whole = !expression.trim().is_empty() && !expression.contains('.');
        match arithmetic::evaluate(&expression, &mut self.variables, &mut own) {
            Ok(number) if is_whole && !text.contains("scale") => {
                self.write(&format!("{number}\n"), &own)
            }
            _ => {
                self.write_unknown("bc");
                Ok(())
            }
        }
    }
}

/// Replaces the escapes of `echo -e`, `printf` and `$'...'`.
pub(super) fn escaped(text: &str) -> String {
    let mut found = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            found.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => found.push('\n'),
            Some('t') => found.push('\t'),
            Some('r') => found.push('\r'),
            Some('a' | 'b' | 'e' | 'c') => {}
            Some(c @ ('\\' | '\'' | '"')) => found.push(c),
            Some(c) => found.extend(['\\', c]),
            None => found.push('\\'),
        }
    }
    found
}
