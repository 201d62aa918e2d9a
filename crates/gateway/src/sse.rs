//! Server-sent events that pass by in pieces: counts them and looks for usage in their data (WHATWG HTML §9.2).
//! Nothing is kept but what was found.

use crate::json::Finder;
use crate::usage::{self, Usage};

/// Reads a stream of events.
#[derive(Debug, Clone)]
pub struct EventReader {
    line: Line,
    finder: Option<Finder>,
    /// Whether the event so far has data.
    has_data: bool,
    /// Events that carried JSON.
    pub events: u64,
    /// What the events say was used.
    pub usage: Option<Usage>,
}

/// Where in a line the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// This many bytes of `data:` were read.
    Field(usize),
    /// At the first byte of the value.
    Value,
    /// In the value.
    Data,
    /// In a line that is not data.
    Other,
}

const FIELD: &[u8] = b"data:";

impl Default for EventReader {
    fn default() -> Self {
        Self { line: Line::Field(0), finder: None, has_data: false, events: 0, usage: None }
    }
}

impl EventReader {
    /// Takes in the next piece. Returns whether an event that carries data began in it.
    pub fn feed(&mut self, piece: &[u8]) -> bool {
        let before = self.events;
        let mut rest = piece;
        while let [byte, after @ ..] = rest {
            match self.line {
                Line::Field(count) => {
                    rest = after;
                    self.in_field(*byte, count);
                }
                Line::Value => {
                    // One space behind the colon belongs to the syntax.
                    if *byte == b' ' {
                        rest = after;
                    }
                    self.line = Line::Data;
                    self.data_begins(rest.first().copied());
                }
                Line::Data | Line::Other => {
                    let end =
                        rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
                    if self.line == Line::Data {
                        self.data(&rest[..end]);
                    }
                    rest = &rest[end..];
                    if let [_, after @ ..] = rest {
                        self.line = Line::Field(0);
                        rest = after;
                    }
                }
            }
        }
        self.events > before
    }

    fn in_field(&mut self, byte: u8, count: usize) {
        match byte {
            b'\n' | b'\r' => {
                if count == 0 {
                    self.finder = None;
                    self.has_data = false;
                }
                self.line = Line::Field(0);
            }
            _ if FIELD[count] == byte => {
                self.line = if count + 1 == FIELD.len() { Line::Value } else { Line::Field(count + 1) };
            }
            _ => self.line = Line::Other,
        }
    }

    /// An event's data begins with a byte, or a line of it does.
    fn data_begins(&mut self, first: Option<u8>) {
        if self.has_data || first.is_none_or(|byte| matches!(byte, b'\n' | b'\r')) {
            return;
        }
        self.has_data = true;
        if first == Some(b'{') {
            self.events += 1;
            self.finder = Some(Finder::new(usage::WANTED));
        }
    }

    fn data(&mut self, mut piece: &[u8]) {
        if !self.has_data {
            self.data_begins(piece.first().copied());
        }
        while let Some(finder) = &mut self.finder
            && !piece.is_empty()
        {
            let (found, taken) = finder.feed(piece);
            if let Some(found) = found {
                Usage::merge(&mut self.usage, &found);
            }
            piece = &piece[taken..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> (u64, Option<Usage>) {
        let mut reader = EventReader::default();
        for piece in text.as_bytes().chunks(size) {
            reader.feed(piece);
        }
        (reader.events, reader.usage)
    }

    #[test]
    fn events_are_counted_and_usage_is_found_however_the_pieces_break() {
        let openai = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{}\"}}],\"usage\":null}\n\n\
            : keep-alive\n\ndata:{\"choices\":[]}\r\n\r\n\
            data: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":5}}}\n\n\
            data: [DONE]\n\n";
        let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7,\
            \"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n\n\
            event: content_block_delta\ndata: {\"delta\":{\"text\":\"hi\"}}\n\n\
            event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n\n";
        for text in [openai, anthropic] {
            for size in 1..text.len() {
                let want = Usage { prompt: 7, completion: 3, cached: 5 };
                assert_eq!(read(text, size), (3, Some(want)), "{text} in pieces of {size}");
            }
        }
    }

    #[test]
    fn other_text_is_no_event() {
        for text in
            ["", "\n\n\n", "data", "data:\n\ndata:\n\n", "date: {}\n\n", "data: [DONE]\n\n", "{\"usage\":{}}"]
        {
            for size in 1..=text.len() {
                assert_eq!(read(text, size), (0, None), "{text:?}");
            }
        }
    }

    #[test]
    fn data_may_span_lines() {
        let text = "data: {\"usage\":\ndata: {\"prompt_tokens\":\ndata: 4}}\n\n";
        for size in 1..text.len() {
            assert_eq!(read(text, size), (1, Some(Usage { prompt: 4, completion: 0, cached: 0 })));
        }
    }
}
