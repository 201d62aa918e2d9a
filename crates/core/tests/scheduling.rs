//! The scheduler as a whole: worked examples, hazards, reports and properties (spec scheduling).

#[path = "scheduling/examples.rs"]
mod examples;
#[path = "scheduling/hazards.rs"]
mod hazards;
#[path = "scheduling/properties.rs"]
mod properties;
#[path = "scheduling/reports.rs"]
mod reports;
#[path = "scheduling/scenario.rs"]
mod scenario;
mod support;
