//! Quantities and versions: no text panics, what is written reads back as the same value, order is consistent.
//!
//! Input: one to three texts, separated by line feeds.

#![no_main]

use std::cmp::Ordering;

use libfuzzer_sys::fuzz_target;
use modelplane_cel::{Quantity, Semver};

fuzz_target!(|data: &str| {
    let mut texts = data.splitn(3, '\n');
    let texts = [texts.next(), texts.next(), texts.next()].map(Option::unwrap_or_default);
    check_quantities(texts);
    check_versions(texts);
});

fn check_quantities(texts: [&str; 3]) {
    let quantities: Vec<Quantity> = texts.iter().filter_map(|text| Quantity::parse(text).ok()).collect();
    for quantity in &quantities {
        let again = Quantity::parse(&quantity.to_string()).expect("a written quantity is one");
        assert_eq!(&again, quantity);
        assert_eq!(quantity.is_integer(), quantity.as_integer().is_some());
        let _ = quantity.as_approximate_float();
    }
    for left in &quantities {
        for right in &quantities {
            assert_eq!(left.cmp(right), right.cmp(left).reverse());
            let sum = left.add(right);
            assert_eq!(&sum.sub(right), left);
            assert_eq!(Quantity::parse(&sum.to_string()).as_ref(), Ok(&sum));
            assert_eq!(sum.cmp(left), right.sign().cmp(&0));
        }
    }
    check_transitive(&quantities);
}

fn check_versions(texts: [&str; 3]) {
    let versions: Vec<Semver> = texts.iter().filter_map(|text| Semver::parse_normalized(text).ok()).collect();
    for version in &versions {
        let again = Semver::parse(&version.to_string()).expect("a written version is one");
        assert_eq!(&again, version);
        assert_eq!(again.build(), version.build());
    }
    for text in texts {
        if let Ok(strict) = Semver::parse(text) {
            assert_eq!(strict.to_string(), text);
            assert_eq!(Semver::parse_normalized(text), Ok(strict));
        }
    }
    check_transitive(&versions);
}

fn check_transitive<T: Ord>(values: &[T]) {
    if let [first, second, third] = values
        && first <= second
        && second <= third
    {
        assert_ne!(first.cmp(third), Ordering::Greater);
    }
}
