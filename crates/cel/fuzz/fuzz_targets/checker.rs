//! Expressions of plausible shape are typed in every environment without surprises.

#![no_main]

mod support;

use libfuzzer_sys::fuzz_target;
use modelplane_cel::device::{DeviceEnvironment, DeviceFeatures, Selector};
use modelplane_cel::object::Program;
use modelplane_cel::validation::{Rule, RuleSource};

fuzz_target!(|bytes: &[u8]| {
    let text = support::expression(bytes);
    support::on_small_stack(&text, |text| {
        support::timed(text, || drop(Selector::compile(text)));
        let features =
            DeviceFeatures { kubernetes_minor: 31, consumable_capacity: false, list_attributes: true, math: true };
        let environment = DeviceEnvironment::new(features);
        support::timed(text, || drop(Selector::compile_in(&environment, text)));
        support::timed(text, || drop(Program::compile(&["device", "object"], text)));
        let schema = serde_json::json!({
            "type": "object",
            "properties": {
                "driver": {"type": "string", "maxLength": 63},
                "items": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "port": {"x-kubernetes-int-or-string": true},
            },
        });
        let text = &text.replace("device", "self");
        let source = RuleSource { rule: text, ..RuleSource::default() };
        support::timed(text, || drop(Rule::compile(&schema, true, source)));
    });
});
