//! RE2 patterns on the `regex` crate.
//!
//! Both share their semantics and most of the syntax. Patterns are translated where they differ: `\d \w \s \b` are
//! ASCII in RE2, classes neither nest nor know set operations, a `{` that starts no repetition is literal, `\Q…\E`
//! quotes; and what RE2 refuses (repeated repetitions, the flags `x` and `u`) is refused.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The largest repetition count of RE2.
const MAXIMUM_REPETITIONS: u32 = 1000;
/// Bounds the memory of one compiled pattern; patterns within [`MAXIMUM_WEIGHT`] stay far below.
const MAXIMUM_PROGRAM: usize = 64 << 20;
/// RE2's bound on the nesting of groups.
const MAXIMUM_NESTING: u32 = 250;
/// Bounds the time of compiling the patterns of one expression, or one pattern at run time.
pub(crate) const MAXIMUM_WEIGHT: u64 = 200_000;

/// A valid pattern that is compiled when it is first used.
#[derive(Debug)]
pub(crate) struct LazyPattern {
    translated: String,
    weight: u64,
    compiled: OnceLock<Result<Regex, String>>,
}

impl LazyPattern {
    /// Checks the syntax of an RE2 pattern.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        let translated = Translation::new(pattern).translate()?;
        let parsed = ParserBuilder::new().nest_limit(MAXIMUM_NESTING).build().parse(&translated);
        let weight = weight(&parsed.map_err(|error| last_line(&error.to_string()))?);
        Ok(Self { translated, weight, compiled: OnceLock::new() })
    }

    /// About how many states the compiled pattern has.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// Whether both match the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.translated == other.translated
    }

    /// The compiled pattern.
    pub(crate) fn get(&self) -> Result<&Regex, &str> {
        self.compiled.get_or_init(|| build(&self.translated)).as_ref().map_err(String::as_str)
    }
}

fn build(translated: &str) -> Result<Regex, String> {
    RegexBuilder::new(translated)
        .size_limit(MAXIMUM_PROGRAM)
        .nest_limit(MAXIMUM_NESTING)
        .build()
        .map_err(|error| last_line(&error.to_string()))
}

fn weight(pattern: &Hir) -> u64 {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => 2 * class.ranges().len() as u64 + 1,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64 + 1,
        HirKind::Repetition(repetition) => {
            let count = repetition.max.unwrap_or(repetition.min).max(1);
            weight(&repetition.sub).saturating_mul(u64::from(count)).saturating_add(1)
        }
        HirKind::Capture(capture) => weight(&capture.sub).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(weight).fold(1, u64::saturating_add)
        }
    }
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or("").trim().trim_start_matches("error: ").to_owned()
}

struct Translation<'p> {
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    text: &'p str,
    output: String,
    /// Whether a repetition may follow, and whether one just did.
    repeatable: bool,
    repeated: bool,
}

impl<'p> Translation<'p> {
    fn new(text: &'p str) -> Self {
        Self {
            rest: text.chars().peekable(),
            text,
            output: String::with_capacity(text.len() + 16),
            repeatable: false,
            repeated: false,
        }
    }

    fn operand(&mut self, text: &str) {
        self.output.push_str(text);
        self.repeatable = true;
        self.repeated = false;
    }

    fn literal(&mut self, character: char) {
        let mut buffer = [0; 4];
        let escaped = regex::escape(character.encode_utf8(&mut buffer));
        self.operand(&escaped);
    }

    fn translate(mut self) -> Result<String, String> {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => self.operand(")"),
                '|' => {
                    self.output.push('|');
                    self.repeatable = false;
                    self.repeated = false;
                }
                '*' | '+' | '?' => self.repetition(&character.to_string())?,
                '{' => match self.counted()? {
                    Some(counted) => self.repetition(&counted)?,
                    None => self.operand(r"\{"),
                },
                '}' => self.operand(r"\}"),
                ']' => self.operand(r"\]"),
                '^' | '$' | '.' => self.operand(character.encode_utf8(&mut [0; 4])),
                other => self.literal(other),
            }
        }
        Ok(self.output)
    }

    fn repetition(&mut self, operator: &str) -> Result<(), String> {
        if !self.repeatable {
            return Err(format!("there is nothing for {operator} to repeat"));
        }
        if self.repeated {
            return Err(format!("{operator} repeats a repetition"));
        }
        self.output.push_str(operator);
        if self.rest.next_if_eq(&'?').is_some() {
            self.output.push('?');
        }
        self.repeated = true;
        Ok(())
    }

    /// Reads `n}`, `n,}` or `n,m}` behind a brace; anything else makes the brace literal.
    fn counted(&mut self) -> Result<Option<String>, String> {
        let mut ahead = self.rest.clone();
        let mut body = String::new();
        loop {
            match ahead.next() {
                Some('}') => break,
                Some(character) if character.is_ascii_digit() || character == ',' => body.push(character),
                _ => return Ok(None),
            }
        }
        let (low, high) = match body.split_once(',') {
            Some((low, high)) => (low, (!high.is_empty()).then_some(high)),
            None => (body.as_str(), Some(body.as_str())),
        };
        let canonical = |digits: &str| {
            !digits.is_empty() && !digits.contains(',') && (digits == "0" || !digits.starts_with('0'))
        };
        if !canonical(low) || !high.is_none_or(canonical) {
            return Ok(None);
        }
        let count = |digits: &str| digits.parse::<u32>().ok().filter(|count| *count <= MAXIMUM_REPETITIONS);
        let too_many = || format!("a repetition count is larger than {MAXIMUM_REPETITIONS}");
        let low = count(low).ok_or_else(too_many)?;
        let high = high.map(|high| count(high).ok_or_else(too_many)).transpose()?;
        if high.is_some_and(|high| high < low) {
            return Err(format!("the repetition {{{body}}} ends before it starts"));
        }
        self.rest = ahead;
        Ok(Some(format!("{{{body}}}")))
    }

    fn group(&mut self) -> Result<(), String> {
        self.repeatable = false;
        self.repeated = false;
        self.output.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.output.push('?');
        let ahead: String = self.rest.clone().take_while(|&c| c != ')' && c != ':' && c != '>').collect();
        if ahead.starts_with("P<")
            || (ahead.starts_with('<') && !ahead.starts_with("<=") && !ahead.starts_with("<!"))
        {
            let name = ahead.trim_start_matches('P').trim_start_matches('<');
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("invalid group name {name:?}"));
            }
            // The crate wants names not to start with a digit; they are never read here.
            self.output.push_str(&format!("P<g{name}"));
            for _ in 0..ahead.chars().count() {
                self.rest.next();
            }
            return Ok(());
        }
        if !ahead.chars().all(|c| matches!(c, 'i' | 'm' | 's' | 'U' | '-')) || ahead.ends_with('-') {
            return Err(format!("invalid group (?{ahead}"));
        }
        self.output.push_str(&ahead);
        for _ in 0..ahead.chars().count() {
            self.rest.next();
        }
        if let Some(end) = self.rest.next_if(|&c| c == ':' || c == ')') {
            self.output.push(end);
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(character) = self.rest.next() else {
            return Err("the pattern ends with a backslash".to_owned());
        };
        match character {
            'd' => self.operand("[0-9]"),
            'D' => self.operand("[^0-9]"),
            'w' => self.operand("[0-9A-Za-z_]"),
            'W' => self.operand("[^0-9A-Za-z_]"),
            's' => self.operand(r"[\t\n\f\r ]"),
            'S' => self.operand(r"[^\t\n\f\r ]"),
            'b' => self.operand(r"(?-u:\b)"),
            // The crate has no ASCII form of this that keeps to character boundaries.
            'B' => self.operand(r"\B"),
            'A' => self.operand(r"\A"),
            'z' => self.operand(r"\z"),
            'Q' => self.quoted(),
            'p' | 'P' => {
                let property = self.property()?;
                self.operand(&format!("\\{character}{property}"));
            }
            other => {
                let literal = self.escaped_character(other)?;
                self.literal(literal);
            }
        }
        Ok(())
    }

    fn quoted(&mut self) {
        let rest: String = self.rest.by_ref().collect();
        let (quoted, behind) = rest.split_once(r"\E").unwrap_or((&rest, ""));
        for character in quoted.chars() {
            self.literal(character);
        }
        self.rest = self.text[self.text.len() - behind.len()..].chars().peekable();
    }

    /// The name of a Unicode class, in braces.
    fn property(&mut self) -> Result<String, String> {
        let first = self.rest.next().ok_or("a Unicode class has no name")?;
        if first != '{' {
            return Ok(first.to_string());
        }
        let mut name = String::from("{");
        for character in self.rest.by_ref() {
            name.push(character);
            if character == '}' {
                return Ok(name);
            }
        }
        Err("the name of a Unicode class is not closed".to_owned())
    }

    /// A single character behind a backslash.
    fn escaped_character(&mut self, character: char) -> Result<char, String> {
        let invalid = || format!("invalid escape \\{character}");
        match character {
            'a' => Ok('\x07'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            'x' => {
                let braced = self.rest.next_if_eq(&'{').is_some();
                let mut digits = String::new();
                while let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit) {
                    digits.push(digit);
                    if !braced && digits.len() == 2 {
                        break;
                    }
                }
                if braced && self.rest.next() != Some('}') || !braced && digits.len() != 2 {
                    return Err(invalid());
                }
                u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).ok_or_else(invalid)
            }
            '0'..='7' => {
                // A single digit from 1 to 7 would be a back reference.
                let more = self.rest.peek().is_some_and(|next| ('0'..='7').contains(next));
                if character != '0' && !more {
                    return Err(invalid());
                }
                let mut value = character.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.rest.next_if(|next| ('0'..='7').contains(next)) else { break };
                    value = value * 8 + digit.to_digit(8).unwrap_or(0);
                }
                char::from_u32(value).ok_or_else(invalid)
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => Ok(other),
            _ => Err(invalid()),
        }
    }

    fn class(&mut self) -> Result<(), String> {
        self.output.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.output.push('^');
        }
        let mut first = true;
        loop {
            let Some(character) = self.rest.next() else { return Err("a class is not closed".to_owned()) };
            match character {
                ']' if !first => break,
                '[' if self.rest.peek() == Some(&':') => self.named_class()?,
                '\\' => self.class_escape()?,
                '-' => {
                    let range = !first && self.rest.peek().is_some_and(|&next| next != ']');
                    self.output.push_str(if range { "-" } else { r"\-" });
                    if range && self.output.ends_with("--") {
                        return Err("invalid range in a class".to_owned());
                    }
                }
                other => self.class_literal(other),
            }
            first = false;
        }
        self.output.push(']');
        self.repeatable = true;
        self.repeated = false;
        Ok(())
    }

    fn class_literal(&mut self, character: char) {
        if character.is_ascii() && !character.is_ascii_alphanumeric() && character != ' ' {
            self.output.push('\\');
        }
        match character {
            '\n' => self.output.push_str("x0A"),
            other if other.is_ascii_control() => self.output.push_str(&format!("x{:02X}", u32::from(other))),
            other => self.output.push(other),
        }
    }

    fn named_class(&mut self) -> Result<(), String> {
        let ahead: String = self.rest.clone().take_while(|&c| c != ']').collect();
        let name = ahead.trim_matches(':').trim_start_matches('^');
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
            "space", "upper", "word", "xdigit",
        ];
        if !ahead.ends_with(':') || !NAMES.contains(&name) {
            return Err(format!("invalid class [{ahead}]"));
        }
        self.output.push_str(&format!("[{ahead}]"));
        for _ in 0..=ahead.chars().count() {
            self.rest.next();
        }
        Ok(())
    }

    fn class_escape(&mut self) -> Result<(), String> {
        let Some(character) = self.rest.next() else {
            return Err("the pattern ends with a backslash".to_owned());
        };
        match character {
            'd' => self.output.push_str("0-9"),
            'D' => self.output.push_str("[^0-9]"),
            'w' => self.output.push_str("0-9A-Za-z_"),
            'W' => self.output.push_str("[^0-9A-Za-z_]"),
            's' => self.output.push_str(r"\t\n\f\r "),
            'S' => self.output.push_str(r"[^\t\n\f\r ]"),
            'p' | 'P' => {
                let property = self.property()?;
                self.output.push_str(&format!("\\{character}{property}"));
            }
            other => {
                let literal = self.escaped_character(other)?;
                self.class_literal(literal);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::LazyPattern;

    #[test]
    fn patterns_mean_what_they_mean_in_re2() {
        for (pattern, text, expected) in [
            (r"^\d+$", "42", true),
            (r"^\d+$", "٤٢", false),
            (r"^\w+$", "é", false),
            (r"a{,2}", "a{,2}", true),
            (r"x{", "x{", true),
            (r"[a[b]", "[", true),
            (r"[&&]", "&", true),
            (r"\Qa.b\E+", "a.bbb", true),
            (r"\Qa.b\E", "axb", false),
            (r"[[:alpha:]-]+", "-a", true),
            (r"^(?i)ABC$", "abc", true),
            (r"\x{41}\x42\103", "ABC", true),
            (r"^[^\d]$", "x", true),
            (r"\bfoo\b", "a foo b", true),
            (r"(?P<1st>a)(?<b>c)", "ac", true),
            (r"<\<", "<<", true),
        ] {
            assert_eq!(
                LazyPattern::new(pattern).unwrap().get().unwrap().is_match(text),
                expected,
                "{pattern} on {text}"
            );
        }
    }

    #[test]
    fn what_re2_refuses_is_refused() {
        for pattern in [
            "[",
            "(",
            ")",
            "a**",
            "*",
            "a{1001}",
            r"\1",
            r"\u0041",
            "(?x)a",
            "(?=a)",
            "(?<=a)",
            "a{2,1}",
            r"\",
            "[b-a]",
            r"\pX{",
            "(?P<a>x)(?P<a>y)",
        ] {
            assert!(LazyPattern::new(pattern).is_err(), "{pattern}");
        }
    }
}
