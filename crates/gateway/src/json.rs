//! Finding a value in JSON that passes by in pieces, without keeping or parsing the rest.
//!
//! The text is not validated: what is malformed is for the endpoint to refuse. Whatever comes in, the state stays
//! small and every byte is looked at once.

use std::ops::Range;

/// A value that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which of the keys it belongs to.
    pub key: usize,
    /// Where it is, counted from the beginning of the text.
    pub range: Range<usize>,
    /// The value's text, up to the finder's limit.
    pub text: Vec<u8>,
    /// Whether `text` is less than the whole value.
    pub cut: bool,
    /// Ends of the elements within `text`, if the value is an array.
    pub elements: Vec<usize>,
}

/// What to find.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Keys of objects.
    pub keys: &'static [&'static str],
    /// How deep: 1 is the outermost object.
    pub depth: usize,
    /// Most bytes of a value to keep.
    pub limit: usize,
    /// Most elements of an array to keep.
    pub elements: usize,
}

/// Finds values of wanted keys in a text that is fed piece by piece.
#[derive(Debug, Clone)]
pub struct Finder {
    wanted: Wanted,
    position: usize,
    depth: usize,
    /// Whether the containers at depths 1 and up are objects.
    objects: [bool; DEEPEST + 1],
    mode: Mode,
    expects_key: bool,
    key: Vec<u8>,
    /// The wanted key whose value comes next.
    armed: Option<usize>,
    capture: Option<Capture>,
    ended: bool,
}

/// Deepest that keys can be wanted.
const DEEPEST: usize = 3;

/// Room for a value's text to begin with.
const ROOM: usize = 256;

/// Longest key worth keeping, with room for escapes.
const KEY: usize = 96;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Between,
    Scalar,
    Text { escaped: bool, key: bool },
}

#[derive(Debug, Clone)]
struct Capture {
    found: Found,
    depth: usize,
    full: bool,
}

impl Finder {
    /// A finder at the beginning of a text.
    pub fn new(wanted: Wanted) -> Self {
        Self {
            wanted: Wanted { depth: wanted.depth.min(DEEPEST), ..wanted },
            position: 0,
            depth: 0,
            objects: [false; DEEPEST + 1],
            mode: Mode::Between,
            expects_key: false,
            key: Vec::new(),
            armed: None,
            capture: None,
            ended: false,
        }
    }

    /// Whether the outermost value is complete, or the text is not an object.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes in the next piece up to the end of the next wanted value. Returns the value and how many bytes were
    /// taken; feed the rest to go on.
    pub fn feed(&mut self, piece: &[u8]) -> (Option<Found>, usize) {
        let mut at = 0;
        while at < piece.len() && !self.ended {
            if let Mode::Text { escaped: false, key } = self.mode {
                let rest = &piece[at..];
                let run = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                if key {
                    let room = (KEY + 1).saturating_sub(self.key.len());
                    self.key.extend_from_slice(&rest[..run.min(room)]);
                } else {
                    self.keep(&rest[..run]);
                }
                self.position += run;
                at += run;
                if at == piece.len() {
                    break;
                }
            }
            let found = self.step(piece[at]);
            // A scalar ends before the byte that ends it, which is then looked at again.
            if !matches!(found, Step::Again(_)) {
                self.position += 1;
                at += 1;
            }
            if let Step::Found(found) | Step::Again(Some(found)) = found {
                return (Some(found), at);
            }
        }
        (None, if self.ended { piece.len() } else { at })
    }

    fn step(&mut self, byte: u8) -> Step {
        match self.mode {
            Mode::Text { escaped, key } => self.in_text(byte, escaped, key),
            Mode::Scalar
                if matches!(byte, b',' | b'}' | b']' | b':' | b'"') || byte.is_ascii_whitespace() =>
            {
                self.mode = Mode::Between;
                Step::Again(self.value_ended(0))
            }
            Mode::Scalar => {
                self.keep(&[byte]);
                Step::On
            }
            Mode::Between => self.between(byte),
        }
    }

    fn in_text(&mut self, byte: u8, escaped: bool, key: bool) -> Step {
        if key {
            if byte != b'"' || escaped {
                if self.key.len() <= KEY {
                    self.key.push(byte);
                }
            } else {
                self.mode = Mode::Between;
                self.armed = self.wanted_key();
                return Step::On;
            }
        } else {
            self.keep(&[byte]);
            if byte == b'"' && !escaped {
                self.mode = Mode::Between;
                return self.value_ended(1).map_or(Step::On, Step::Found);
            }
        }
        self.mode = Mode::Text { escaped: byte == b'\\' && !escaped, key };
        Step::On
    }

    fn between(&mut self, byte: u8) -> Step {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => self.keep(&[byte]),
            b'"' if self.expects_key => {
                self.expects_key = false;
                self.key.clear();
                self.keep(&[byte]);
                self.mode = Mode::Text {
                    escaped: false,
                    key: self.depth <= self.wanted.depth && self.capture.is_none(),
                };
            }
            b'"' => {
                self.value_begins();
                self.keep(&[byte]);
                self.mode = Mode::Text { escaped: false, key: false };
            }
            b'{' | b'[' => {
                self.value_begins();
                self.keep(&[byte]);
                self.depth += 1;
                if let Some(object) = self.objects.get_mut(self.depth) {
                    *object = byte == b'{';
                }
                self.expects_key = byte == b'{';
                self.ended = self.depth == 1 && byte == b'[';
            }
            b'}' | b']' => {
                self.keep(&[byte]);
                self.depth = self.depth.saturating_sub(1);
                self.expects_key = false;
                self.ended = self.depth == 0;
                return self.value_ended(1).map_or(Step::On, Step::Found);
            }
            b',' => {
                self.keep(&[byte]);
                self.armed = None;
                self.expects_key = self.objects.get(self.depth).copied().unwrap_or(false);
                if let Some(capture) = &mut self.capture
                    && capture.depth + 1 == self.depth
                    && !capture.full
                {
                    let end = capture.found.text.len() - 1;
                    return self.element_ended(end);
                }
            }
            b':' => self.keep(&[byte]),
            _ => {
                self.value_begins();
                self.keep(&[byte]);
                self.mode = Mode::Scalar;
                self.ended = self.depth == 0;
            }
        }
        match &self.capture {
            Some(capture) if capture.full => self.take(true, 1).map_or(Step::On, Step::Found),
            _ => Step::On,
        }
    }

    /// Starts keeping the value of a wanted key.
    fn value_begins(&mut self) {
        if self.capture.is_some() {
            return;
        }
        if let Some(key) = self.armed.take() {
            let range = self.position..self.position;
            // Room for most, so that it is not made bit by bit.
            let text = Vec::with_capacity(ROOM.min(self.wanted.limit));
            let found = Found { key, range, text, cut: false, elements: Vec::new() };
            self.capture = Some(Capture { found, depth: self.depth, full: false });
        }
    }

    /// A value has ended, `behind` bytes after the position. If it is the one kept, it is found.
    fn value_ended(&mut self, behind: usize) -> Option<Found> {
        let capture = self.capture.as_ref()?;
        if capture.depth == self.depth { self.take(capture.full, behind) } else { None }
    }

    fn element_ended(&mut self, end: usize) -> Step {
        let most = self.wanted.elements;
        if let Some(capture) = &mut self.capture {
            capture.found.elements.push(end);
            if capture.found.elements.len() >= most {
                return self.take(true, 1).map_or(Step::On, Step::Found);
            }
        }
        Step::On
    }

    fn take(&mut self, cut: bool, behind: usize) -> Option<Found> {
        let mut found = self.capture.take()?.found;
        found.range.end = self.position + behind;
        found.cut = cut;
        Some(found)
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(capture) = &mut self.capture {
            let room = self.wanted.limit.saturating_sub(capture.found.text.len());
            capture.found.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
            capture.full |= bytes.len() > room;
        }
    }

    /// Which wanted key the kept key is.
    fn wanted_key(&self) -> Option<usize> {
        if self.depth > self.wanted.depth {
            return None;
        }
        let index = |key: &[u8]| self.wanted.keys.iter().position(|wanted| wanted.as_bytes() == key);
        if !self.key.contains(&b'\\') {
            return index(&self.key);
        }
        let quoted = [b"\"", &self.key[..], b"\""].concat();
        index(serde_json::from_slice::<String>(&quoted).ok()?.as_bytes())
    }
}

enum Step {
    /// The byte is taken.
    On,
    /// The byte is taken and completes a wanted value.
    Found(Found),
    /// The byte is to be looked at again, perhaps after a wanted value.
    Again(Option<Found>),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MODEL: Wanted = Wanted { keys: &["model"], depth: 1, limit: 64, elements: usize::MAX };

    /// Every value found, with the text fed in pieces of a size.
    fn all(wanted: Wanted, text: &str, size: usize) -> Vec<Found> {
        let mut finder = Finder::new(wanted);
        let mut found = Vec::new();
        for mut piece in text.as_bytes().chunks(size) {
            while !piece.is_empty() {
                let (one, taken) = finder.feed(piece);
                found.extend(one);
                piece = &piece[taken..];
            }
        }
        found
    }

    fn texts(wanted: Wanted, text: &str) -> Vec<String> {
        let whole = all(wanted, text, text.len().max(1));
        for size in 1..text.len() {
            assert_eq!(all(wanted, text, size), whole, "{text} in pieces of {size}");
        }
        for found in &whole {
            if !found.cut {
                assert_eq!(&text.as_bytes()[found.range.clone()], found.text, "{text}");
            }
        }
        whole.into_iter().map(|found| String::from_utf8(found.text).unwrap()).collect()
    }

    #[test]
    fn a_model_is_found_wherever_it_stands() {
        let cases: &[(&str, &[&str])] = &[
            (r#"{"model":"team/chat"}"#, &[r#""team/chat""#]),
            (r#" { "messages" : [ {"model":"no"} ] , "model" : "yes" }"#, &[r#""yes""#]),
            (r#"{"a":"\"model\":\"no\"","model":"y\"es"}"#, &[r#""y\"es""#]),
            (r#"{"mod\u0065l":"yes"}"#, &[r#""yes""#]),
            (r#"{"a":{"b":[{"model":"no"}],"model":"no"},"model":"yes"}"#, &[r#""yes""#]),
            (r#"{"model":12,"x":1}"#, &["12"]),
            (r#"{"model":null}"#, &["null"]),
            (r#"{"model":{"a":[1,{}]},"x":1}"#, &[r#"{"a":[1,{}]}"#]),
            (r#"{"x":"model"}"#, &[]),
            (r#"{"x":["model","no"]}"#, &[]),
            (r#"["model","no"]"#, &[]),
            (r#""model""#, &[]),
            ("", &[]),
            ("}}}{\"model\":1}", &[]),
        ];
        for &(text, want) in cases {
            assert_eq!(texts(MODEL, text), want, "{text}");
        }
    }

    #[test]
    fn values_may_stand_deeper() {
        let usage = Wanted { keys: &["usage"], depth: 2, ..MODEL };
        let text =
            r#"{"type":"message_start","message":{"usage":{"input_tokens":3},"x":{"usage":0}},"usage":null}"#;
        assert_eq!(texts(usage, text), [r#"{"input_tokens":3}"#, "null"]);
    }

    #[test]
    fn long_values_are_cut() {
        let short = Wanted { limit: 8, ..MODEL };
        let found = all(short, r#"{"model":"0123456789","n":1}"#, 3);
        assert_eq!((found[0].text.as_slice(), found[0].cut), (&b"\"0123456"[..], true));
    }

    #[test]
    fn arrays_can_be_cut_after_some_elements() {
        let two = Wanted { keys: &["messages"], elements: 2, ..MODEL };
        let text = r#"{"messages":[{"a":[1,2]},"b",{"c":3}],"x":1}"#;
        assert_eq!(texts(two, text), [r#"[{"a":[1,2]},"b","#]);
        assert_eq!(all(two, text, 5)[0].elements, [12, 16]);
        assert_eq!(texts(two, r#"{"messages":[1]}"#), ["[1]"]);
    }

    #[test]
    fn depth_without_end_is_harmless() {
        let text = "{\"a\":".repeat(100_000);
        assert!(all(MODEL, &text, 1_000).is_empty());
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            "[a\"\\\\{}:,\\[\\] é]{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let key = prop_oneof![Just("model".to_owned()), "[a-z\"\\\\]{0,6}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::vec((key, inner), 0..4)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_parser_finds_is_found(value in any_json(), pretty in any::<bool>(), size in 1_usize..16) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let wanted = Wanted { limit: usize::MAX, ..MODEL };
            let found = all(wanted, &text, size);
            match value.as_object().and_then(|object| object.get("model")) {
                Some(model) => {
                    prop_assert_eq!(found.len(), 1);
                    let parsed: serde_json::Value = serde_json::from_slice(&found[0].text).unwrap();
                    prop_assert_eq!(&parsed, model);
                    prop_assert_eq!(&text.as_bytes()[found[0].range.clone()], &found[0].text[..]);
                }
                None => prop_assert!(found.is_empty()),
            }
        }

        #[test]
        fn pieces_make_no_difference_even_to_garbage(text in "[\\[\\]{}\",:\\\\ model0]{0,64}", size in 1_usize..8) {
            prop_assert_eq!(all(MODEL, &text, size), all(MODEL, &text, text.len().max(1)));
        }
    }
}
