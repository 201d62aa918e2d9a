//! Paths: which service a path names, and what an endpoint is asked for (spec gateway-and-routing §1, Gateway API
//! `PathPrefix` and `ReplacePrefixMatch`).

/// A path split at the service's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServicePath<'p> {
    /// `namespace/name`.
    pub(crate) id: &'p str,
    /// What follows: empty, or begins with a slash.
    pub(crate) rest: &'p str,
}

impl<'p> ServicePath<'p> {
    /// Splits `/namespace/name[/…]`.
    pub(crate) fn parse(path: &'p str) -> Option<Self> {
        let inner = path.strip_prefix('/')?;
        let namespace = inner.find('/')?;
        let name = inner[namespace + 1..].find('/').map_or(inner.len(), |end| namespace + 1 + end);
        if namespace == 0 || name == namespace + 1 {
            return None;
        }
        Some(Self { id: &inner[..name], rest: &inner[name..] })
    }
}

/// What an endpoint is asked for: `rewrite` in place of the prefix, the query kept.
///
/// `whole` is the path as the client sent it, `rest` its part behind the prefix. Without a rewrite the path stays
/// whole, prefix included, as upstream's route does.
pub(crate) fn rewrite(whole: &str, rest: &str, replacement: Option<&str>, query: Option<&str>) -> String {
    let (base, rest) = match replacement {
        Some(replacement) => (replacement.strip_suffix('/').unwrap_or(replacement), rest),
        None => ("", whole),
    };
    let mut target =
        String::with_capacity(1 + base.len() + rest.len() + query.map_or(0, |query| query.len() + 1));
    if !base.is_empty() && !base.starts_with('/') {
        target.push('/');
    }
    target.push_str(base);
    target.push_str(rest);
    if target.is_empty() {
        target.push('/');
    }
    if let Some(query) = query {
        target.push('?');
        target.push_str(query);
    }
    target
}

/// Whether a segment of the path means "here" or "up", in any spelling a later hop may resolve.
///
/// Such a path could be checked as one service's here and be served as another's by a hop that normalizes.
pub(crate) fn has_dot_segments(path: &str) -> bool {
    let bytes = path.as_bytes();
    if memchr::memchr3(b'.', b'%', b'\\', bytes).is_none() {
        return false;
    }
    let (mut dots, mut others, mut at) = (0, 0, 0);
    while at < bytes.len() {
        let (byte, length) = decode(&bytes[at..]);
        match byte {
            b'/' | b'\\' if others == 0 && (dots == 1 || dots == 2) => return true,
            b'/' | b'\\' => (dots, others) = (0, 0),
            b'.' => dots += 1,
            _ => others += 1,
        }
        at += length;
    }
    others == 0 && (dots == 1 || dots == 2)
}

/// The first byte of the text, percent-decoded, and how many bytes spell it.
fn decode(bytes: &[u8]) -> (u8, usize) {
    if let [b'%', high, low, ..] = bytes
        && let (Some(high), Some(low)) = ((*high as char).to_digit(16), (*low as char).to_digit(16))
    {
        return ((high * 16 + low) as u8, 3);
    }
    (bytes[0], 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_service_of_its_first_two_segments() {
        let cases: &[(&str, Option<(&str, &str)>)] = &[
            ("/ml-team/chat/v1/chat/completions", Some(("ml-team/chat", "/v1/chat/completions"))),
            ("/ml-team/chat/", Some(("ml-team/chat", "/"))),
            ("/ml-team/chat", Some(("ml-team/chat", ""))),
            ("/ml-team/chatty", Some(("ml-team/chatty", ""))),
            ("/ml-team/", None),
            ("/ml-team", None),
            ("//chat/v1", None),
            ("/", None),
            ("", None),
            ("*", None),
            ("/a//b", None),
        ];
        for &(path, want) in cases {
            let got = ServicePath::parse(path).map(|path| (path.id, path.rest));
            assert_eq!(got, want, "{path}");
        }
    }

    #[test]
    fn prefixes_are_replaced_as_gateway_api_tabulates() {
        let cases: &[(&str, Option<&str>, &str)] = &[
            ("/foo/svc/bar", Some("/xyz"), "/xyz/bar"),
            ("/foo/svc/bar", Some("/xyz/"), "/xyz/bar"),
            ("/foo/svc", Some("/xyz"), "/xyz"),
            ("/foo/svc/", Some("/xyz"), "/xyz/"),
            ("/foo/svc/bar", Some(""), "/bar"),
            ("/foo/svc/", Some(""), "/"),
            ("/foo/svc", Some(""), "/"),
            ("/foo/svc/", Some("/"), "/"),
            ("/foo/svc", Some("/"), "/"),
            ("/foo/svc/v1/x", Some("openai/"), "/openai/v1/x"),
            ("/foo/svc/v1/x", None, "/foo/svc/v1/x"),
        ];
        for &(path, replacement, want) in cases {
            let rest = ServicePath::parse(path).unwrap().rest;
            assert_eq!(rewrite(path, rest, replacement, None), want, "{path} {replacement:?}");
        }
        assert_eq!(rewrite("/a/b/c", "/c", Some("/x/"), Some("q=1&r")), "/x/c?q=1&r");
    }

    #[test]
    fn dot_segments_are_seen_in_every_spelling() {
        for path in
            ["/a/../b", "/a/./b", "/a/..", "/a/%2e%2E/b", "/a/.%2e/b", "/a/b%2f..%2fc", "/a\\..\\b", "/a/%2e"]
        {
            assert!(has_dot_segments(path), "{path}");
        }
        for path in ["/a/b", "/a/...", "/a/.b", "/a/b.", "/a/%2", "/v1/models/x.y%20z", "/a/..b/"] {
            assert!(!has_dot_segments(path), "{path}");
        }
    }
}
