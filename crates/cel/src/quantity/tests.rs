use std::collections::hash_map::DefaultHasher;

use super::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    quantity(text).hash(&mut hasher);
    hasher.finish()
}

#[test]
fn integers_depend_on_the_form_as_in_kubernetes() {
    let cases = [
        ("8", Some(8), "plain"),
        ("1.0", None, "a decimal place"),
        ("1000m", None, "a negative scale"),
        ("0.0", None, "a negative scale, even for 0"),
        ("1.5Gi", None, "binary with a fraction is big"),
        ("99999Gi", Some(99_999 << 30), "five digits"),
        ("100000Gi", None, "six digits are big"),
        ("99Ti", Some(99 << 40), "two digits"),
        ("100Ti", None, "three digits are big"),
        ("1Pi", None, "always big"),
        ("999999999999999999", Some(999_999_999_999_999_999), "18 digits"),
        ("9223372036854775807", None, "19 digits"),
        ("9E", Some(9_000_000_000_000_000_000), "fits 64 bits"),
        ("10E", None, "does not fit 64 bits"),
        ("0e400", Some(0), "0 always fits"),
    ];
    for (text, expected, reason) in cases {
        assert_eq!(quantity(text).as_integer(), expected, "{text}: {reason}");
        assert_eq!(quantity(text).is_integer(), expected.is_some(), "{text}: {reason}");
    }
}

#[test]
fn floats_are_rounded_as_kubernetes_rounds_them() {
    let cases = [
        ("0.3", 0.300_000_000_000_000_04),
        ("8", 8.0),
        ("1.5Gi", 1_610_612_736.0),
        ("100E", 1e20),
        ("-1e400", f64::NEG_INFINITY),
        ("1000000000000000000000e400", f64::INFINITY),
        ("8Ei", 9_223_372_036_854_775_807.0),
    ];
    for (text, expected) in cases {
        assert_eq!(quantity(text).as_approximate_float().to_bits(), f64::to_bits(expected), "{text}");
    }
}

#[test]
fn equal_values_are_equal_whatever_their_form() {
    let classes = [
        ["1Gi", "1024Mi", "1073741824.000000000"],
        ["1e21", "1000E", "1000000000000000000000"],
        ["0", "-0", "0.0000000000000000000000"],
        ["0.1n", "1n", "0.0000000001"],
        ["8Ei", "10Ei", "9223372036854775807"],
        ["1e10000", "10e9999", "1000000000000000000000e9979"],
    ];
    for class in classes {
        for text in class {
            assert_eq!(quantity(text), quantity(class[0]), "{text}");
            assert_eq!(hash_of(text), hash_of(class[0]), "{text}");
        }
    }
}

#[test]
fn order_is_that_of_the_values() {
    let ascending = [
        "-1e10000",
        "-10Ei",
        "-1e3",
        "-1n",
        "0",
        "1n",
        "500m",
        "1",
        "1.5",
        "2",
        "81559Mi",
        "80Gi",
        "1.5Ti",
        "9E",
        "9223372036854775807",
        "9223372036854775808",
        "1e19",
        "1e9999",
        "1e10000",
        "1.5e10000",
    ];
    for (left_index, left) in ascending.iter().enumerate() {
        for (right_index, right) in ascending.iter().enumerate() {
            let order = quantity(left).cmp(&quantity(right));
            assert_eq!(order, left_index.cmp(&right_index), "{left} against {right}");
        }
    }
}

#[test]
fn sums_keep_the_scaled_form_while_they_fit() {
    let cases = [
        ("1Gi", "1", "1073741825", true),
        ("1.5Gi", "0.5Gi", "2Gi", false),
        ("9223372036854775807", "1", "9223372036854775808", false),
        ("0", "1Gi", "1Gi", true),
        ("1", "1m", "1001m", false),
        ("9E", "9E", "18E", false),
        ("5", "-5", "0", true),
        ("1e3", "2", "1002", true),
    ];
    for (left, right, sum, is_integer) in cases {
        let computed = quantity(left).add(&quantity(right));
        assert_eq!(
            (computed.to_string().as_str(), computed.is_integer()),
            (sum, is_integer),
            "{left} + {right}"
        );
        assert_eq!(computed.sub(&quantity(right)), quantity(left), "{left} + {right} - {right}");
    }
    assert_eq!(quantity("5").sub_integer(i64::MIN), quantity("9223372036854775813"));
    assert_eq!(quantity("1Ki").add_integer(1).to_string(), "1025");
    assert_eq!(quantity("0").sub(&quantity("1.5Gi")).to_string(), "-1536Mi");
}

#[test]
fn refused_texts_are_named_with_their_cause() {
    let cases = [
        ("", "a quantity cannot be empty", None),
        ("Ei", "quantity \"Ei\" has no digits", None),
        ("e-10", "quantity \"e-10\" has no digits", None),
        ("10Mo", "quantity \"10Mo\" has the unknown suffix \"Mo\"", None),
        ("1e", "quantity \"1e\" has the unknown suffix \"e\"", None),
        ("1e3Ki", "quantity \"1e3Ki\" has the unknown suffix \"e3Ki\"", None),
        (" 1", "quantity \" 1\" has the unknown suffix \" 1\"", None),
        ("1e10001", "quantity \"1e10001\" has an exponent beyond ±10000", None),
        ("1e99999999999999999999", "quantity \"1e99999999999999999999\" has an exponent beyond ±10000", None),
        (
            "80GB",
            "quantity \"80GB\" has the unknown suffix \"GB\"",
            Some("write `G` for 10^9 or `Gi` for 2^30"),
        ),
        ("1K", "quantity \"1K\" has the unknown suffix \"K\"", Some("write `k` for 1000 or `Ki` for 1024")),
    ];
    for (text, message, hint) in cases {
        let error = Quantity::parse(text).expect_err(text);
        assert_eq!((error.to_string().as_str(), error.hint()), (message, hint), "{text}");
    }
    let long = format!("1{}", "ü".repeat(1000));
    assert!(Quantity::parse(&long).expect_err("umlauts").to_string().len() < 200);
}

#[test]
fn serialised_data_may_hold_a_text_or_a_number() {
    let read = |json: &str| serde_json::from_str::<Quantity>(json).map(|quantity| quantity.to_string());
    assert_eq!(read("\" 1024Mi \"").expect("a text"), "1Gi");
    assert_eq!(read("8").expect("a number"), "8");
    assert_eq!(read("-0.5").expect("a number"), "-500m");
    assert!(read("true").is_err());
    assert_eq!(serde_json::to_string(&quantity("0.5")).expect("a text"), "\"500m\"");
}

#[test]
fn computed_quantities_read_back_as_the_same_value() {
    let large = quantity("999E").add(&quantity("1E"));
    assert_eq!(large.to_string(), "1000E");
    let binary = quantity("8Ei").add_integer(1);
    assert_eq!(binary.to_string(), "9223372036854775808");
    assert_eq!(quantity(&binary.to_string()), binary);
    let largest = quantity("-25000e10000");
    assert_eq!(largest.to_string(), "-250000e9999");
}

#[test]
fn a_quantity_takes_two_words() {
    assert_eq!(size_of::<Quantity>(), 16);
}
