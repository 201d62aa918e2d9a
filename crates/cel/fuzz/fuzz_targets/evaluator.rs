//! Every evaluation ends within its limits, gives the same answer twice, and never panics.

#![no_main]

mod support;

use libfuzzer_sys::fuzz_target;
use modelplane_cel::device::{Attribute, COST_LIMIT, Device, PreparedDevice, Selector};

fn device() -> PreparedDevice<'static> {
    PreparedDevice::new(Device {
        driver: "d".into(),
        attributes: vec![
            ("n".into(), Attribute::Int(8)),
            ("s".into(), Attribute::String("Hopper".into())),
            ("ok".into(), Attribute::Bool(true)),
            ("ver".into(), Attribute::Version("9.5.3".into())),
            ("x.io/n".into(), Attribute::Int(-1)),
        ],
        capacity: vec![("memory".into(), "141Gi".into()), ("frac".into(), "1.5Gi".into())],
        allow_multiple_allocations: true,
    })
    .expect("the device is well-formed")
}

fuzz_target!(|bytes: &[u8]| {
    let text = support::expression(bytes);
    support::on_small_stack(&text, |text| {
        let Ok(selector) = Selector::compile(text) else { return };
        let device = device();
        let first = support::timed(text, || selector.evaluate(&device));
        assert!(first.result.is_err() || first.cost <= COST_LIMIT);
        assert_eq!(first, selector.evaluate(&device));
        selector.explain_inputs(&device);
    });
});
