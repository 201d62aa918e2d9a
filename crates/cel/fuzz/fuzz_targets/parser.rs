//! Any text either compiles or is refused, quickly, on a small stack, with a sensible position.

#![no_main]

mod support;

use libfuzzer_sys::fuzz_target;
use modelplane_cel::device::Selector;

fuzz_target!(|text: &str| {
    support::on_small_stack(text, |text| {
        support::timed(text, || {
            if let Err(error) = Selector::compile(text) {
                assert!(error.line() >= 1 && error.column() >= 1);
                assert!(!error.message().is_empty());
                assert!(error.snippet().ends_with('^'));
            }
        });
    });
});
