//! What users read when an expression is wrong.

use modelplane_cel::device::Selector;

#[test]
fn errors_name_the_place_and_the_cause() {
    for (text, line, column, message, hint) in [
        (
            "device.atributes[\"d\"].n == 1",
            1,
            8,
            "device has no field atributes",
            Some("did you mean attributes?"),
        ),
        ("devic.driver == \"d\"", 1, 1, "devic is not declared", Some("did you mean device?")),
        (
            "device.driver.startWith(\"d\")",
            1,
            15,
            "there is no function startWith",
            Some("did you mean startsWith()?"),
        ),
        ("true &&\n  (1 == \"a\")", 2, 6, "== is not defined for (int, string)", None),
        ("device.driver", 1, 8, "the expression must evaluate to bool, not string", None),
        (
            "device.capacity[\"d\"].memory.sign() == 1",
            1,
            29,
            "sign is not defined for kubernetes.Quantity.()",
            Some("write it as a function: sign(x)"),
        ),
        (
            "device.capacity[\"d\"].memory >= quantity(\"1Gi\")",
            1,
            29,
            ">= is not defined for (kubernetes.Quantity, kubernetes.Quantity)",
            Some("compare quantities and versions with compareTo(), isLessThan() or isGreaterThan()"),
        ),
        ("[\"a\", 5].exists(x, true)", 1, 7, "expected string like the elements before, found int", None),
        ("true &&", 1, 8, "expected an expression, found the end", None),
        (
            "has(device.attributes[\"d\"])",
            1,
            22,
            "the argument of has() must be a field selection like a.b",
            None,
        ),
        ("device.driver.matches(\"[\")", 1, 23, "invalid regular expression: a class is not closed", None),
        ("\"é\" == 'x", 1, 8, "the string is not closed", None),
    ] {
        let error = Selector::compile(text).unwrap_err();
        let found = (error.line(), error.column(), error.message(), error.hint());
        assert_eq!(found, (line, column, message, hint), "{text}");
    }
}

#[test]
fn the_snippet_points_at_the_column() {
    let error = Selector::compile("true &&\n\tdevice.drivr == \"d\"").unwrap_err();
    assert_eq!(error.snippet(), "\tdevice.drivr == \"d\"\n\t       ^");
    assert_eq!(error.to_string(), "2:9: device has no field drivr");
}
