//! Properties of quantities, checked against exact decimal fractions computed here.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};

use modelplane_cel::Quantity;
use proptest::prelude::*;

/// A quantity's text and its exact value in units of 10^−9, small enough for 128 bits.
#[derive(Debug, Clone)]
struct Exact {
    text: String,
    nanos: i128,
}

/// Suffixes with the factor they stand for, as a power of ten and a power of two.
const SUFFIXES: [(&str, i32, u32); 13] = [
    ("", 0, 0),
    ("n", -9, 0),
    ("u", -6, 0),
    ("m", -3, 0),
    ("k", 3, 0),
    ("M", 6, 0),
    ("G", 9, 0),
    ("e2", 2, 0),
    ("E-4", -4, 0),
    ("Ki", 0, 10),
    ("Mi", 0, 20),
    ("Gi", 0, 30),
    ("Ti", 0, 40),
];

/// Amounts whose values fit 128 bits in units of 10^−9.
fn exact() -> impl Strategy<Value = Exact> {
    let number = (0u64..100_000_000, prop::option::of((0u64..1_000_000, 0usize..7)));
    (any::<bool>(), number, 0..SUFFIXES.len()).prop_map(|(negative, (whole, fraction), suffix)| {
        let fraction =
            fraction.map_or(String::new(), |(digits, length)| format!("{digits:06}")[..length].to_owned());
        let (suffix, ten, two) = SUFFIXES[suffix];
        let point = if fraction.is_empty() { "" } else { "." };
        let sign = if negative { "-" } else { "" };
        // At most 14 digits: times 2^40 and 10^9 they stay below 2^127 if the fraction is divided last.
        let digits: i128 = format!("{whole}{fraction}").parse().expect("digits");
        let exponent = 9 + ten - fraction.len() as i32;
        let scaled = digits << two;
        let magnitude = if exponent >= 0 {
            scaled * 10i128.pow(exponent.unsigned_abs())
        } else {
            let divisor = 10i128.pow(exponent.unsigned_abs());
            (scaled + divisor - 1) / divisor
        };
        let cap = if two > 0 { i128::from(i64::MAX) * 1_000_000_000 } else { i128::MAX };
        let magnitude = magnitude.min(cap);
        let nanos = if negative { -magnitude } else { magnitude };
        Exact { text: format!("{sign}{whole}{point}{fraction}{suffix}"), nanos }
    })
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn hash(quantity: &Quantity) -> u64 {
    let mut hasher = DefaultHasher::new();
    quantity.hash(&mut hasher);
    hasher.finish()
}

proptest! {
    #[test]
    fn order_and_equality_are_those_of_the_exact_values(left in exact(), right in exact()) {
        let (first, second) = (quantity(&left.text), quantity(&right.text));
        prop_assert_eq!(first.cmp(&second), left.nanos.cmp(&right.nanos));
        prop_assert_eq!(second.cmp(&first), right.nanos.cmp(&left.nanos));
        prop_assert_eq!(first == second, left.nanos == right.nanos);
        prop_assert_eq!(first.sign(), i64::try_from(left.nanos.signum()).expect("a sign"));
        if first == second {
            prop_assert_eq!(hash(&first), hash(&second));
        }
    }

    #[test]
    fn order_is_transitive(mut three in prop::array::uniform3(exact())) {
        three.sort_by_key(|one| quantity(&one.text));
        prop_assert_ne!(quantity(&three[0].text).cmp(&quantity(&three[2].text)), Ordering::Greater);
    }

    #[test]
    fn the_written_text_reads_back_as_the_same_value(one in exact(), other in exact()) {
        for quantity in [quantity(&one.text), quantity(&one.text).add(&quantity(&other.text))] {
            let again = Quantity::parse(&quantity.to_string());
            prop_assert_eq!(again.as_ref(), Ok(&quantity));
            prop_assert_eq!(again.map(|again| hash(&again)), Ok(hash(&quantity)));
        }
    }

    #[test]
    fn sums_are_exact_and_undone_by_differences(left in exact(), right in exact(), integer in any::<i64>()) {
        let (first, second) = (quantity(&left.text), quantity(&right.text));
        let sum = first.add(&second);
        prop_assert_eq!(&sum, &quantity(&format!("{}n", left.nanos + right.nanos)));
        prop_assert_eq!(&sum, &second.add(&first));
        prop_assert_eq!(&sum.sub(&second), &first);
        prop_assert_eq!(&first.add_integer(integer).sub_integer(integer), &first);
    }

    #[test]
    fn no_text_makes_reading_panic(text in "\\PC{0,40}|[-+0-9.eEinumkKMGTP]{0,40}") {
        if let Ok(quantity) = Quantity::parse(&text) {
            let again = Quantity::parse(&quantity.to_string());
            prop_assert_eq!(again.as_ref(), Ok(&quantity));
        }
    }
}

#[test]
fn the_longest_texts_take_time_linear_in_their_length() {
    let start = std::time::Instant::now();
    for text in [
        format!("{}e10000", "9".repeat(10_000)),
        format!("0.{}1e10000", "0".repeat(10_000)),
        format!("{}.{}Ei", "9".repeat(5_000), "9".repeat(5_000)),
        format!("{}k", "0".repeat(10_000)),
        "1e10000".to_owned(),
    ] {
        let quantity = quantity(&text);
        assert_eq!(Quantity::parse(&quantity.to_string()).as_ref(), Ok(&quantity));
        assert!(quantity.add(&quantity) > quantity || quantity.is_zero());
    }
    // Two orders of magnitude above what an optimised build needs.
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "took {:?}", start.elapsed());
}
