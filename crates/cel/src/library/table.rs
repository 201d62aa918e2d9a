//! The table of functions, a line or two for each; the notation is that of [`super::declarations`].

use super::declarations::{Cost, Library, Op, Row};
use crate::named_format::NamedFormat;

/// Collects rows; one method call per function keeps the table readable.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    since: u8,
}

impl Rows {
    /// Sets the Kubernetes 1.x that introduced what is added next.
    fn since(&mut self, version: u8) -> &mut Self {
        self.since = version;
        self
    }

    /// A function of which every overload has the same cost rule.
    fn add(&mut self, name: &'static str, op: Op, cost: Cost, signatures: &[&'static str]) {
        for signature in signatures {
            self.rows.push(Row {
                name,
                signature,
                op,
                cost,
                open_cost: cost,
                dispatched: true,
                since: self.since,
                library: Library::Standard,
            });
        }
    }

    /// A function whose overloads have rules of their own; an open call costs one.
    fn varied(&mut self, name: &'static str, op: Op, overloads: &[(&'static str, Cost)]) {
        for &(signature, cost) in overloads {
            self.add(name, op, cost, &[signature]);
            self.last().open_cost = Cost::One;
        }
    }

    fn last(&mut self) -> &mut Row {
        self.rows.last_mut().expect("a row was just added")
    }

    /// Marks the rows of a name as having one implementation for all overloads, called with all arguments
    /// evaluated even where the overload is open.
    fn singleton(&mut self, name: &str) {
        for row in self.rows.iter_mut().filter(|row| row.name == name) {
            row.dispatched = false;
        }
    }

    fn in_library(&mut self, library: Library, names: &[&str]) {
        for row in self.rows.iter_mut().filter(|row| names.contains(&row.name)) {
            row.library = library;
        }
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Rows::default();
    operators(&mut rows);
    standard(&mut rows);
    time(&mut rows);
    optionals(&mut rows);
    strings(&mut rows);
    lists(&mut rows);
    kubernetes(&mut rows);
    addresses(&mut rows);
    math(&mut rows);
    rows.rows
}

/// The types with an order, in the order in which overloads over them are declared.
const ORDERED: [&str; 8] = ["i", "u", "d", "b", "D", "t", "s", "y"];

fn operators(rows: &mut Rows) {
    rows.since(0).add("_&&_", Op::And, Cost::Logic, &["bb -> b"]);
    rows.since(0).add("_||_", Op::Or, Cost::Logic, &["bb -> b"]);
    rows.since(0).add("_?_:_", Op::Conditional, Cost::Conditional, &["bAA -> A"]);
    rows.since(0).add("!_", Op::Not, Cost::One, &["b -> b"]);
    rows.since(0).add("-_", Op::Negate, Cost::One, &["d -> d", "i -> i"]);
    rows.since(0).add("@not_strictly_false", Op::NotStrictlyFalse, Cost::One, &["b -> b"]);
    rows.since(0).add("_==_", Op::Equal, Cost::Equality, &["AA -> b"]);
    rows.since(0).add("_!=_", Op::NotEqual, Cost::Comparison, &["AA -> b"]);
    rows.since(0).varied(
        "_+_",
        Op::Add,
        &[
            ("yy -> y", Cost::AddText),
            ("dd -> d", Cost::One),
            ("DD -> D", Cost::One),
            ("Dt -> t", Cost::One),
            ("tD -> t", Cost::One),
            ("ii -> i", Cost::One),
            ("LALA -> LA", Cost::AddList),
            ("ss -> s", Cost::AddText),
            ("uu -> u", Cost::One),
        ],
    );
    rows.since(0).add(
        "_-_",
        Op::Subtract,
        Cost::One,
        &["dd -> d", "DD -> D", "ii -> i", "tD -> t", "tt -> D", "uu -> u"],
    );
    rows.since(0).add("_*_", Op::Multiply, Cost::One, &["dd -> d", "ii -> i", "uu -> u"]);
    rows.since(0).add("_/_", Op::Divide, Cost::One, &["dd -> d", "ii -> i", "uu -> u"]);
    rows.since(0).add("_%_", Op::Modulo, Cost::One, &["ii -> i", "uu -> u"]);
    for (name, op) in
        [("_<_", Op::Less), ("_<=_", Op::LessEqual), ("_>_", Op::Greater), ("_>=_", Op::GreaterEqual)]
    {
        rows.since(0).varied(
            name,
            op,
            &[
                ("bb -> b", Cost::One),
                ("ii -> b", Cost::One),
                ("id -> b", Cost::One),
                ("iu -> b", Cost::One),
                ("uu -> b", Cost::One),
                ("ud -> b", Cost::One),
                ("ui -> b", Cost::One),
                ("dd -> b", Cost::One),
                ("di -> b", Cost::One),
                ("du -> b", Cost::One),
                ("ss -> b", Cost::Comparison),
                ("yy -> b", Cost::Comparison),
                ("tt -> b", Cost::One),
                ("DD -> b", Cost::One),
            ],
        );
        rows.singleton(name);
    }
    rows.since(0).varied("@in", Op::In, &[("ALA -> b", Cost::InList), ("AMAB -> b", Cost::One)]);
    rows.since(0).varied(
        "_[_]",
        Op::Index,
        &[
            ("LAi -> A", Cost::IndexList),
            ("MABA -> B", Cost::IndexMap),
            ("OLAi -> OA", Cost::One),
            ("OMABA -> OB", Cost::One),
        ],
    );
    for name in ["-_", "_+_", "_-_", "_*_", "_/_", "_%_", "@in", "_[_]"] {
        rows.singleton(name);
    }
}

fn standard(rows: &mut Rows) {
    rows.since(0).add(
        "size",
        Op::Size,
        Cost::One,
        &["y -> i", ".y -> i", "LA -> i", ".LA -> i", "MAB -> i", ".MAB -> i", "s -> i", ".s -> i"],
    );
    rows.since(0).add("type", Op::TypeOf, Cost::One, &["A -> TA"]);
    rows.since(0).add("dyn", Op::Dyn, Cost::Dyn, &["A -> *"]);
    rows.since(0).add("bool", Op::Bool, Cost::One, &["b -> b", "s -> b"]);
    rows.since(0).varied("bytes", Op::Bytes, &[("y -> y", Cost::One), ("s -> y", Cost::StringToBytes)]);
    rows.since(0).add("double", Op::Double, Cost::One, &["d -> d", "i -> d", "s -> d", "u -> d"]);
    rows.since(0).add("duration", Op::Duration, Cost::One, &["D -> D", "i -> D", "s -> D"]);
    rows.since(0).add(
        "int",
        Op::Int,
        Cost::One,
        &["i -> i", "d -> i", "D -> i", "s -> i", "t -> i", "u -> i"],
    );
    rows.since(0).varied(
        "string",
        Op::String,
        &[
            ("s -> s", Cost::One),
            ("b -> s", Cost::One),
            ("y -> s", Cost::BytesToString),
            ("d -> s", Cost::One),
            ("D -> s", Cost::One),
            ("i -> s", Cost::One),
            ("t -> s", Cost::One),
            ("u -> s", Cost::One),
            ("I -> s", Cost::One),
            ("C -> s", Cost::One),
        ],
    );
    rows.since(0).add("timestamp", Op::Timestamp, Cost::One, &["t -> t", "i -> t", "s -> t"]);
    rows.since(0).add("uint", Op::Uint, Cost::One, &["u -> u", "d -> u", "i -> u", "s -> u"]);
    rows.since(0).add("contains", Op::Contains, Cost::Contains, &[".ss -> b"]);
    rows.since(0).add("endsWith", Op::EndsWith, Cost::Affix, &[".ss -> b"]);
    rows.since(0).add("startsWith", Op::StartsWith, Cost::Affix, &[".ss -> b"]);
    rows.since(0).varied("matches", Op::Matches, &[("ss -> b", Cost::One), (".ss -> b", Cost::Matches)]);
    for name in ["size", "type", "dyn", "matches"] {
        rows.singleton(name);
    }
}

fn time(rows: &mut Rows) {
    for (name, op) in [
        ("getFullYear", Op::FullYear),
        ("getMonth", Op::Month),
        ("getDayOfYear", Op::DayOfYear),
        ("getDayOfMonth", Op::DayOfMonth),
        ("getDate", Op::Date),
        ("getDayOfWeek", Op::DayOfWeek),
    ] {
        rows.since(0).add(name, op, Cost::One, &[".t -> i", ".ts -> i"]);
    }
    for (name, op) in [
        ("getHours", Op::Hours),
        ("getMinutes", Op::Minutes),
        ("getSeconds", Op::Seconds),
        ("getMilliseconds", Op::Milliseconds),
    ] {
        rows.since(0).add(name, op, Cost::One, &[".t -> i", ".ts -> i", ".D -> i"]);
    }
}

/// Kubernetes enables optionals since 1.28.
fn optionals(rows: &mut Rows) {
    rows.since(28).add("optional.of", Op::OptionalOf, Cost::One, &["A -> OA"]);
    rows.since(28).add("optional.ofNonZeroValue", Op::OptionalOfNonZero, Cost::One, &["A -> OA"]);
    rows.since(28).add("optional.none", Op::OptionalNone, Cost::One, &[" -> OA"]);
    rows.since(28).add("value", Op::OptionalValue, Cost::One, &[".OA -> A"]);
    rows.since(28).add("hasValue", Op::OptionalHasValue, Cost::One, &[".OA -> b"]);
    rows.since(28).add("or", Op::OptionalOr, Cost::One, &[".OAOA -> OA"]);
    rows.since(28).add("orValue", Op::OptionalOrValue, Cost::One, &[".OAA -> A"]);
    rows.since(28).add("_?._", Op::OptionalSelect, Cost::One, &["*s -> OA"]);
    rows.since(28).add(
        "_[?_]",
        Op::OptionalIndex,
        Cost::One,
        &["LAi -> OA", "OLAi -> OA", "MABA -> OB", "OMABA -> OB"],
    );
    rows.since(34).add("last", Op::Last, Cost::One, &[".LA -> OA"]);
    rows.since(34).add("first", Op::First, Cost::One, &[".LA -> OA"]);
    rows.since(34).add("optional.unwrap", Op::OptionalUnwrap, Cost::One, &["LOA -> LA"]);
    rows.since(34).add("unwrapOpt", Op::OptionalUnwrap, Cost::One, &[".LOA -> LA"]);
}

fn strings(rows: &mut Rows) {
    rows.since(0).add("charAt", Op::CharAt, Cost::One, &[".si -> s"]);
    rows.since(0).add("indexOf", Op::IndexOf, Cost::Traverse, &[".LAA -> i", ".ss -> i", ".ssi -> i"]);
    rows.since(0).add(
        "lastIndexOf",
        Op::LastIndexOf,
        Cost::Traverse,
        &[".LAA -> i", ".ss -> i", ".ssi -> i"],
    );
    rows.since(0).add("lowerAscii", Op::LowerAscii, Cost::SameText, &[".s -> s"]);
    rows.since(0).add("upperAscii", Op::UpperAscii, Cost::SameText, &[".s -> s"]);
    rows.since(0).add("replace", Op::Replace, Cost::Replace, &[".sss -> s", ".sssi -> s"]);
    rows.since(0).add("split", Op::Split, Cost::Split, &[".ss -> Ls", ".ssi -> Ls"]);
    rows.since(0).add("substring", Op::Substring, Cost::SameText, &[".si -> s", ".sii -> s"]);
    rows.since(0).add("trim", Op::Trim, Cost::SameText, &[".s -> s"]);
    rows.since(0).add("join", Op::Join, Cost::Join, &[".Ls -> s", ".Lss -> s"]);
    rows.since(29).add("format", Op::Format, Cost::FormatText, &[".sL* -> s"]);
    rows.last().dispatched = true;
    rows.since(29).add("strings.quote", Op::Quote, Cost::Quote, &["s -> s"]);
    rows.since(0).add("find", Op::Find, Cost::Find, &[".ss -> s"]);
    rows.since(0).add("findAll", Op::FindAll, Cost::Find, &[".ss -> Ls", ".ssi -> Ls"]);
}

fn lists(rows: &mut Rows) {
    for element in ORDERED {
        let list = |suffix: &str| -> &'static str { format!(".L{element} -> {suffix}").leak() };
        rows.since(0).add("isSorted", Op::IsSorted, Cost::Traverse, &[list("b")]);
        rows.since(0).add("max", Op::Max, Cost::Traverse, &[list(element)]);
        rows.since(0).add("min", Op::Min, Cost::Traverse, &[list(element)]);
    }
    for (signature, op) in [
        (".Li -> i", Op::Sum),
        (".Lu -> u", Op::SumUint),
        (".Ld -> d", Op::SumDouble),
        (".LD -> D", Op::SumDuration),
    ] {
        rows.since(0).add("sum", op, Cost::Traverse, &[signature]);
    }
    rows.since(34).add("slice", Op::Slice, Cost::Slice, &[".LAii -> LA"]);
    rows.since(34).add("flatten", Op::Flatten, Cost::Flatten, &[".LLA -> LA", ".L*i -> L*"]);
    for element in ORDERED {
        let text = matches!(element, "s" | "y");
        rows.since(34).varied(
            "sort",
            Op::Sort,
            &[(format!(".L{element} -> L{element}").leak(), Cost::Sort { text })],
        );
        rows.since(34).varied(
            "@sortByAssociatedKeys",
            Op::SortByKeys,
            &[(format!(".LAL{element} -> LA").leak(), Cost::SortByKeys { text })],
        );
    }
    rows.singleton("sort");
    rows.singleton("@sortByAssociatedKeys");
    rows.since(34).add("lists.range", Op::Range, Cost::Range, &["i -> Li"]);
    rows.since(34).add("reverse", Op::Reverse, Cost::Reverse, &[".LA -> LA"]);
    rows.since(34).add("distinct", Op::Distinct, Cost::Distinct, &[".LA -> LA"]);
    rows.since(32).add("cel.@mapInsert", Op::MapInsert, Cost::One, &["MABAB -> MAB", "MABMAB -> MAB"]);
    rows.since(29).add("sets.contains", Op::SetsContains, Cost::Sets(1), &["LALA -> b"]);
    rows.since(29).add("sets.equivalent", Op::SetsEquivalent, Cost::Sets(2), &["LALA -> b"]);
    rows.since(29).add("sets.intersects", Op::SetsIntersects, Cost::Sets(1), &["LALA -> b"]);
}

fn kubernetes(rows: &mut Rows) {
    rows.since(28).add("quantity", Op::Quantity, Cost::Parse, &["s -> q"]);
    rows.since(28).add("isQuantity", Op::IsQuantity, Cost::Parse, &["s -> b"]);
    rows.since(28).add("sign", Op::Sign, Cost::One, &["q -> i"]);
    rows.since(28).add("isGreaterThan", Op::IsGreaterThan, Cost::One, &[".qq -> b", ".vv -> b"]);
    rows.since(28).add("isLessThan", Op::IsLessThan, Cost::One, &[".qq -> b", ".vv -> b"]);
    rows.since(28).add("compareTo", Op::CompareTo, Cost::One, &[".qq -> i", ".vv -> i"]);
    rows.since(28).add("asApproximateFloat", Op::AsApproximateFloat, Cost::One, &[".q -> d"]);
    rows.since(28).add("asInteger", Op::AsInteger, Cost::One, &[".q -> i"]);
    rows.since(28).add("isInteger", Op::IsInteger, Cost::One, &[".q -> b"]);
    rows.since(28).add("add", Op::QuantityAdd, Cost::One, &[".qq -> q", ".qi -> q"]);
    rows.since(28).add("sub", Op::QuantitySub, Cost::One, &[".qq -> q", ".qi -> q"]);
    rows.since(33).add("semver", Op::Semver, Cost::Parse, &["s -> v", "sb -> v"]);
    rows.since(33).add("isSemver", Op::IsSemver, Cost::Parse, &["s -> b", "sb -> b"]);
    rows.since(33).add("major", Op::Major, Cost::One, &[".v -> i"]);
    rows.since(33).add("minor", Op::Minor, Cost::One, &[".v -> i"]);
    rows.since(33).add("patch", Op::Patch, Cost::One, &[".v -> i"]);
    for format in NamedFormat::all() {
        let name = format!("format.{}", format.name()).leak();
        rows.since(31).add(name, Op::NamedFormat(format), Cost::One, &[" -> F"]);
    }
    rows.since(31).add("format.named", Op::FormatNamed, Cost::One, &["s -> OF"]);
    rows.since(31).add("validate", Op::Validate, Cost::Validate, &[".Fs -> OLs"]);
    rows.since(36).add("includes", Op::Includes, Cost::Includes, &[".** -> b"]);
    rows.in_library(Library::ListAttributes, &["includes"]);
}

fn addresses(rows: &mut Rows) {
    rows.since(30).varied("ip", Op::Ip, &[("s -> I", Cost::Parse), (".C -> I", Cost::One)]);
    rows.last().op = Op::CidrIp;
    rows.since(30).add("isIP", Op::IsIp, Cost::Parse, &["s -> b"]);
    rows.since(30).add("ip.isCanonical", Op::IpIsCanonical, Cost::ParseTwice, &["s -> b"]);
    for (name, op, signature) in [
        ("family", Op::Family, ".I -> i"),
        ("isUnspecified", Op::IsUnspecified, ".I -> b"),
        ("isLoopback", Op::IsLoopback, ".I -> b"),
        ("isLinkLocalMulticast", Op::IsLinkLocalMulticast, ".I -> b"),
        ("isLinkLocalUnicast", Op::IsLinkLocalUnicast, ".I -> b"),
        ("isGlobalUnicast", Op::IsGlobalUnicast, ".I -> b"),
        ("prefixLength", Op::PrefixLength, ".C -> i"),
        ("masked", Op::Masked, ".C -> C"),
    ] {
        rows.since(30).add(name, op, Cost::One, &[signature]);
    }
    rows.since(30).add("cidr", Op::Cidr, Cost::Parse, &["s -> C"]);
    rows.since(30).add("isCIDR", Op::IsCidr, Cost::Parse, &["s -> b"]);
    for (name, op, text, address) in [
        ("containsIP", Op::ContainsIp, (".Cs -> b", Cost::ContainsIpText), (".CI -> b", Cost::ContainsIp)),
        (
            "containsCIDR",
            Op::ContainsCidr,
            (".Cs -> b", Cost::ContainsCidrText),
            (".CC -> b", Cost::ContainsCidr),
        ),
    ] {
        for (signature, cost) in [text, address] {
            rows.since(30).add(name, op, cost, &[signature]);
            rows.last().open_cost = address.1;
        }
    }
    rows.since(0).add("url", Op::Url, Cost::ParseSized, &["s -> U"]);
    rows.since(0).add("isURL", Op::IsUrl, Cost::One, &["s -> b"]);
    for (name, op, signature) in [
        ("getScheme", Op::UrlScheme, ".U -> s"),
        ("getHost", Op::UrlHost, ".U -> s"),
        ("getHostname", Op::UrlHostname, ".U -> s"),
        ("getPort", Op::UrlPort, ".U -> s"),
        ("getEscapedPath", Op::UrlEscapedPath, ".U -> s"),
        ("getQuery", Op::UrlQuery, ".U -> MsLs"),
    ] {
        rows.since(0).add(name, op, Cost::One, &[signature]);
    }
}

/// cel-go's math library; no Kubernetes environment enables it.
fn math(rows: &mut Rows) {
    let numbers = ["i -> i", "u -> u", "d -> d"];
    rows.since(0).add("math.ceil", Op::Ceil, Cost::One, &["d -> d"]);
    rows.since(0).add("math.floor", Op::Floor, Cost::One, &["d -> d"]);
    rows.since(0).add("math.round", Op::Round, Cost::One, &["d -> d"]);
    rows.since(0).add("math.trunc", Op::Trunc, Cost::One, &["d -> d"]);
    rows.since(0).add("math.abs", Op::Abs, Cost::One, &numbers);
    rows.since(0).add("math.sign", Op::SignOf, Cost::One, &numbers);
    rows.since(0).add("math.isNaN", Op::IsNan, Cost::One, &["d -> b"]);
    rows.since(0).add("math.isInf", Op::IsInf, Cost::One, &["d -> b"]);
    rows.since(0).add("math.isFinite", Op::IsFinite, Cost::One, &["d -> b"]);
    rows.since(0).add("math.sqrt", Op::Sqrt, Cost::One, &["d -> d", "i -> d", "u -> d"]);
    rows.since(0).add("math.bitAnd", Op::BitAnd, Cost::One, &["ii -> i", "uu -> u"]);
    rows.since(0).add("math.bitOr", Op::BitOr, Cost::One, &["ii -> i", "uu -> u"]);
    rows.since(0).add("math.bitXor", Op::BitXor, Cost::One, &["ii -> i", "uu -> u"]);
    rows.since(0).add("math.bitNot", Op::BitNot, Cost::One, &["i -> i", "u -> u"]);
    rows.since(0).add("math.bitShiftLeft", Op::BitShiftLeft, Cost::One, &["ii -> i", "ui -> u"]);
    rows.since(0).add("math.bitShiftRight", Op::BitShiftRight, Cost::One, &["ii -> i", "ui -> u"]);
    for (name, op) in [("math.greatest", Op::Greatest), ("math.least", Op::Least)] {
        rows.since(0).add(name, op, Cost::One, &numbers);
        rows.since(0).add(name, op, Cost::One, &["ii -> i", "uu -> u", "dd -> d"]);
        rows.since(0).add(
            name,
            op,
            Cost::One,
            &["id -> *", "iu -> *", "di -> *", "du -> *", "ui -> *", "ud -> *"],
        );
        rows.since(0).add(name, op, Cost::One, &["Li -> i", "Lu -> u", "Ld -> d", "L* -> *"]);
        rows.since(0).add(name, op, Cost::One, &["*** -> *", "**** -> *", "***** -> *"]);
    }
    let names: Vec<&'static str> =
        rows.rows.iter().map(|row| row.name).filter(|name| name.starts_with("math.")).collect();
    rows.in_library(Library::Math, &names);
}
