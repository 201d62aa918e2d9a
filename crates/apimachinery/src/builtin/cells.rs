//! The values of printed columns.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::columns::Cell;
use super::time;
use crate::selector::LabelSelector;

const NONE: &str = "<none>";

/// The value of a column for an object; `now` is in seconds since 1970.
pub(super) fn cell(cell: Cell, object: &Value, now: i64) -> Value {
    let at = |path: &str| at(object, path);
    let or = |text: String, otherwise: &str| {
        Value::String(if text.is_empty() { otherwise.to_owned() } else { text })
    };
    match cell {
        Cell::Path(path) => at(path).cloned().unwrap_or_else(|| json!(NONE)),
        Cell::PathOr(path, otherwise) => at(path).cloned().unwrap_or_else(|| json!(otherwise)),
        Cell::Number(path) => json!(number(object, path)),
        Cell::Since(path) => since(object, path, now).unwrap_or_else(|| json!("<unknown>")),
        Cell::SinceEither(first, second) => {
            let found = since(object, first, now).or_else(|| since(object, second, now));
            found.unwrap_or_else(|| json!(if second.is_empty() { NONE } else { "<unknown>" }))
        }
        Cell::Ratio(of, all) => json!(format!("{}/{}", number(object, of), number(object, all))),
        Cell::Count(paths) => json!(paths.iter().map(|path| count(at(path))).sum::<usize>()),
        Cell::List(path) => or(join(items(object, path).iter().filter_map(Value::as_str)), NONE),
        Cell::Each(path, field) => or(join(texts(items(object, path), field)), NONE),
        Cell::Labels(path) => or(labels(at(path)), NONE),
        Cell::Selector(path) => or(selector(at(path)), NONE),
        Cell::Containers(path) => json!(join(texts(items(object, &format!("{path}.containers")), "name"))),
        Cell::Images(path) => json!(join(texts(items(object, &format!("{path}.containers")), "image"))),
        Cell::AccessModes(path) => json!(access_modes(items(object, path))),
        Cell::PodReady => json!(pod_ready(object)),
        Cell::PodStatus => json!(pod_status(object)),
        Cell::PodRestarts => {
            let statuses = items(object, "status.containerStatuses").iter();
            json!(statuses.map(|status| number(status, "restartCount")).sum::<i64>().to_string())
        }
        Cell::PodReadinessGates => json!(readiness_gates(object)),
        Cell::NodeStatus => json!(node_status(object)),
        Cell::NodeRoles => or(node_roles(object), NONE),
        Cell::NodeAddress(kind) => {
            let addresses = items(object, "status.addresses").iter();
            or(
                join(addresses.filter(|a| a["type"] == kind).filter_map(|a| a["address"].as_str()).take(1)),
                NONE,
            )
        }
        Cell::ServiceExternal => json!(service_external(object)),
        Cell::ServicePorts => or(service_ports(object), NONE),
        Cell::JobStatus => json!(job_status(object)),
        Cell::JobCompletions => json!(job_completions(object)),
        Cell::JobDuration => json!(job_duration(object, now)),
        Cell::IngressHosts => or(join(texts(items(object, "spec.rules"), "host")), "*"),
        Cell::IngressAddress => json!(load_balancer(object)),
        Cell::IngressPorts => json!(if items(object, "spec.tls").is_empty() { "80" } else { "80, 443" }),
        Cell::Endpoints => or(endpoints(object), NONE),
        Cell::SlicePorts => {
            let ports = items(object, "ports").iter().map(|port| shown(&port["port"]).into_owned());
            or(limited(ports.collect(), ","), "<unset>")
        }
        Cell::SliceEndpoints => {
            let addresses =
                items(object, "endpoints").iter().flat_map(|endpoint| items(endpoint, "addresses"));
            or(limited(addresses.map(|address| shown(address).into_owned()).collect(), ","), "<unset>")
        }
        Cell::Reference(path) => or(reference(at(path)), "<unset>"),
        Cell::Claim => {
            let claim = at("spec.claimRef")
                .map(|claim| format!("{}/{}", text(claim, "namespace"), text(claim, "name")));
            json!(claim.unwrap_or_default())
        }
        Cell::Subjects(kind) => json!(subjects(object, kind)),
        Cell::EventObject => {
            let about = at("involvedObject").or_else(|| at("regarding"));
            json!(about.map(|about| format!(
                "{}/{}",
                text(about, "kind").to_lowercase(),
                text(about, "name")
            )))
        }
        Cell::EventSource => {
            let component = at("source.component").or_else(|| at("reportingController"));
            let parts = [component, at("source.host")];
            json!(parts.into_iter().flatten().map(shown).collect::<Vec<_>>().join(", "))
        }
        Cell::ClaimState => json!(claim_state(object)),
        Cell::Available => {
            let condition =
                items(object, "status.conditions").iter().find(|known| known["type"] == "Available");
            json!(condition.map_or(Cow::Borrowed("Unknown"), |condition| shown(&condition["status"])))
        }
    }
}

fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path.split('.').try_fold(object, |value, name| value.get(name))?;
    (!found.is_null() && found.as_str() != Some("")).then_some(found)
}

fn text<'v>(object: &'v Value, name: &str) -> &'v str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, path: &str) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or(0)
}

fn items<'v>(object: &'v Value, path: &str) -> &'v [Value] {
    at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

fn texts<'v>(items: &'v [Value], field: &'v str) -> impl Iterator<Item = &'v str> {
    items.iter().filter_map(move |item| item.get(field).and_then(Value::as_str))
}

fn join<'v>(texts: impl Iterator<Item = &'v str>) -> String {
    texts.collect::<Vec<_>>().join(",")
}

/// At most three, and how many more there are.
fn limited(mut texts: Vec<String>, separator: &str) -> String {
    let more = texts.len().saturating_sub(3);
    texts.truncate(3);
    let mut out = texts.join(separator);
    if more > 0 {
        out.push_str(&format!(" + {more} more..."));
    }
    out
}

fn since(object: &Value, path: &str, now: i64) -> Option<Value> {
    let then = time::seconds(at(object, path)?.as_str()?)?;
    Some(json!(time::span(now - then)))
}

fn count(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(fields)) => fields.len(),
        _ => 0,
    }
}

fn labels(value: Option<&Value>) -> String {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    let mut labels: Vec<String> = fields.map(|(key, value)| format!("{key}={}", shown(value))).collect();
    labels.sort_unstable();
    labels.join(",")
}

fn selector(value: Option<&Value>) -> String {
    let parsed = value.and_then(|selector| LabelSelector::from_object(selector).ok());
    parsed.map(|selector| selector.to_string()).unwrap_or_default()
}

fn access_modes(modes: &[Value]) -> String {
    let short = |mode: &Value| match mode.as_str() {
        Some("ReadWriteOnce") => "RWO",
        Some("ReadOnlyMany") => "ROX",
        Some("ReadWriteMany") => "RWX",
        Some("ReadWriteOncePod") => "RWOP",
        _ => "",
    };
    let modes: Vec<&str> = modes.iter().map(short).filter(|mode| !mode.is_empty()).collect();
    modes.join(",")
}

fn pod_ready(pod: &Value) -> String {
    let ready =
        items(pod, "status.containerStatuses").iter().filter(|status| status["ready"] == true).count();
    format!("{ready}/{}", items(pod, "spec.containers").len())
}

fn pod_status(pod: &Value) -> String {
    if at(pod, "metadata.deletionTimestamp").is_some() {
        return "Terminating".to_owned();
    }
    let mut status =
        at(pod, "status.reason").or_else(|| at(pod, "status.phase")).map(shown).unwrap_or_default();
    let waits = |status: &'_ Value| {
        let waiting = at(status, "state.waiting.reason").or_else(|| at(status, "state.terminated.reason"));
        waiting.map(|reason| shown(reason).into_owned())
    };
    for (position, init) in items(pod, "status.initContainerStatuses").iter().enumerate() {
        let done = number(init, "state.terminated.exitCode") == 0 && at(init, "state.terminated").is_some();
        if !done && init["started"] != true {
            let of = items(pod, "spec.initContainers").len();
            let reason = waits(init).filter(|reason| reason != "PodInitializing");
            return reason.map_or_else(|| format!("Init:{position}/{of}"), |reason| format!("Init:{reason}"));
        }
    }
    let statuses = items(pod, "status.containerStatuses");
    if let Some(reason) = statuses.iter().find_map(waits) {
        status = Cow::Owned(reason);
    }
    let running =
        statuses.iter().any(|status| status["ready"] == true && at(status, "state.running").is_some());
    if status == "Completed" && running { "Running".to_owned() } else { status.into_owned() }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(pod, "spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let conditions = items(pod, "status.conditions");
    let is_met = |gate: &&Value| {
        let condition = conditions.iter().find(|known| known["type"] == gate["conditionType"]);
        condition.is_some_and(|condition| condition["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(is_met).count(), gates.len())
}

fn node_status(node: &Value) -> String {
    let ready = items(node, "status.conditions").iter().find(|known| known["type"] == "Ready");
    let status = match ready {
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if node["spec"]["unschedulable"] == true { ",SchedulingDisabled" } else { "" };
    format!("{status}{cordoned}")
}

fn node_roles(node: &Value) -> String {
    let labels = at(node, "metadata.labels").and_then(Value::as_object).into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    roles.join(",")
}

fn load_balancer(object: &Value) -> String {
    let ingress = items(object, "status.loadBalancer.ingress").iter();
    let addresses: Vec<&str> =
        ingress.filter_map(|known| known["ip"].as_str().or_else(|| known["hostname"].as_str())).collect();
    addresses.join(",")
}

fn service_external(service: &Value) -> String {
    let given = join(items(service, "spec.externalIPs").iter().filter_map(Value::as_str));
    let found = match text(&service["spec"], "type") {
        "ExternalName" => return text(&service["spec"], "externalName").to_owned(),
        "LoadBalancer" => load_balancer(service),
        _ => String::new(),
    };
    let known: Vec<String> = [found, given].into_iter().filter(|part| !part.is_empty()).collect();
    let nothing = if service["spec"]["type"] == "LoadBalancer" { "<pending>" } else { NONE };
    if known.is_empty() { nothing.to_owned() } else { known.join(",") }
}

fn service_ports(service: &Value) -> String {
    let port = |port: &Value| {
        let protocol = at(port, "protocol").map_or(Cow::Borrowed("TCP"), shown);
        match number(port, "nodePort") {
            0 => format!("{}/{protocol}", shown(&port["port"])),
            node => format!("{}:{node}/{protocol}", shown(&port["port"])),
        }
    };
    items(service, "spec.ports").iter().map(port).collect::<Vec<_>>().join(",")
}

fn job_status(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let mut conditions = items(job, "status.conditions").iter();
        conditions.any(|known| known["type"] == kind && known["status"] == "True")
    };
    let table = [("Complete", "Complete"), ("Failed", "Failed")];
    let known = table.into_iter().find(|(kind, _)| has(kind)).map(|(_, status)| status);
    known.unwrap_or(match () {
        () if at(job, "metadata.deletionTimestamp").is_some() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    })
}

fn job_completions(job: &Value) -> String {
    let done = number(job, "status.succeeded");
    match (at(job, "spec.completions"), number(job, "spec.parallelism")) {
        (Some(wanted), _) => format!("{done}/{}", shown(wanted)),
        (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
        _ => format!("{done}/1"),
    }
}

fn job_duration(job: &Value, now: i64) -> String {
    let time = |path: &str| at(job, path).and_then(Value::as_str).and_then(time::seconds);
    let Some(start) = time("status.startTime") else { return String::new() };
    time::span(time("status.completionTime").unwrap_or(now) - start)
}

fn endpoints(object: &Value) -> String {
    let mut known = Vec::new();
    for subset in items(object, "subsets") {
        for address in items(subset, "addresses") {
            let ip = text(address, "ip");
            let ports = items(subset, "ports");
            if ports.is_empty() {
                known.push(ip.to_owned());
            }
            known.extend(ports.iter().map(|port| format!("{ip}:{}", shown(&port["port"]))));
        }
    }
    limited(known, ",")
}

fn reference(value: Option<&Value>) -> String {
    let Some(value) = value else { return String::new() };
    match (text(value, "apiVersion"), text(value, "kind"), text(value, "name")) {
        (version, kind, "") => format!("{version}/{kind}"),
        (_, kind, name) => format!("{kind}/{name}"),
    }
}

fn subjects(binding: &Value, kind: &str) -> String {
    let known = items(binding, "subjects").iter().filter(|subject| subject["kind"] == kind);
    let name = |subject: &Value| match text(subject, "namespace") {
        "" => text(subject, "name").to_owned(),
        namespace => format!("{namespace}/{}", text(subject, "name")),
    };
    known.map(name).collect::<Vec<_>>().join(", ")
}

fn claim_state(claim: &Value) -> String {
    let mut states = Vec::new();
    if at(claim, "metadata.deletionTimestamp").is_some() {
        states.push("deleted");
    }
    match (at(claim, "status.allocation").is_some(), items(claim, "status.reservedFor").is_empty()) {
        (false, _) if states.is_empty() => states.push("pending"),
        (true, true) => states.push("allocated"),
        (true, false) => states.extend(["allocated", "reserved"]),
        _ => {}
    }
    states.join(",")
}
