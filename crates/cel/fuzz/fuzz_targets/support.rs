#![allow(dead_code, reason = "each target uses its part")]

//! What the targets share: a small stack, a clock, and expressions made from bytes.

use std::time::Duration;

use cpu_time::ThreadTime;

/// Coverage counters slow everything down; without them 50 ms are allowed.
const LIMIT: Duration = Duration::from_millis(250);

/// Runs on the stack that the main program gives its threads.
pub fn on_small_stack(text: &str, run: impl FnOnce(&str) + Send) {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn_scoped(scope, || run(text))
            .expect("a thread starts")
            .join()
            .expect("no panic")
    });
}

/// Runs and fails if it takes long, by the thread's own time: other work on the machine does not count.
pub fn timed<T>(text: &str, run: impl FnOnce() -> T) -> T {
    let started = ThreadTime::now();
    let value = run();
    let took = started.elapsed();
    assert!(took < LIMIT, "{took:?} for {text:?}");
    value
}

/// Fragments; `@` is replaced by another fragment.
const FRAGMENTS: &[&str] = &[
    "device.driver", "device.attributes", "device.capacity", "device.attributes[\"d\"]", "device.attributes[\"d\"].n",
    "device.attributes[\"d\"].s", "device.attributes[\"d\"].ok", "device.attributes[\"d\"].ver",
    "device.attributes[\"d\"].nope", "device.capacity[\"d\"].memory", "device.attributes[@].?n", "x", "y", "k",
    "true", "false", "null", "0", "1", "-1", "7", "100", "9223372036854775807", "1u", "0.5", "1e300", "\"\"", "\"a\"",
    "\"1Gi\"", "\"1.2.3\"", "\"[a-z]+\"", "\"%s %d\"", "b\"ab\"", "[]", "{}", "[@]", "[@, @]", "[@, @, @]", "{@: @}",
    "{@: @, @: @}", "[?@]", "{?@: @}", "(@)", "!@", "-@", "@ + @", "@ - @", "@ * @", "@ / @", "@ % @", "@ == @",
    "@ != @", "@ < @", "@ >= @", "@ in @", "@ && @", "@ || @", "@ ? @ : @", "@[@]", "@[?@]", "@.n", "@.?n", "has(@.n)",
    "@.all(x, @)", "@.exists(x, @)", "@.exists_one(x, @)", "@.map(x, @)", "@.map(x, @, @)", "@.filter(x, @)",
    "@.all(k, y, @)", "@.exists(k, y, @)", "@.existsOne(k, y, @)", "@.transformList(k, y, @)",
    "@.transformMap(k, y, @)", "@.transformMap(k, y, @, @)", "@.transformMapEntry(k, y, @)", "cel.bind(x, @, @)",
    "cel.bind(y, @, @)", "@.optMap(x, @)", "@.optFlatMap(x, @)", "@.sortBy(x, @)", "optional.of(@)",
    "optional.none()", "optional.ofNonZeroValue(@)", "@.orValue(@)", "@.or(@)", "@.value()", "@.hasValue()",
    "size(@)", "@.size()", "string(@)", "int(@)", "double(@)", "uint(@)", "bytes(@)", "dyn(@)", "type(@)", "bool(@)",
    "duration(@)", "timestamp(@)", "@.contains(@)", "@.startsWith(@)", "@.matches(@)", "@.find(@)", "@.findAll(@)",
    "@.split(@)", "@.split(@, @)", "@.join(@)", "@.replace(@, @)", "@.substring(@)", "@.substring(@, @)",
    "@.lowerAscii()", "@.trim()", "@.charAt(@)", "@.indexOf(@)", "@.lastIndexOf(@, @)", "@.format([@, @])",
    "strings.quote(@)", "quantity(@)", "isQuantity(@)", "@.compareTo(@)", "@.add(@)", "@.sub(@)", "@.isGreaterThan(@)",
    "@.asInteger()", "semver(@)", "semver(@, true)", "@.major()", "lists.range(@)", "@.sum()", "@.max()",
    "@.isSorted()", "@.sort()", "@.distinct()", "@.flatten()", "@.flatten(@)", "@.reverse()", "@.slice(@, @)",
    "@.first()", "@.last()", "@.unwrapOpt()", "sets.contains(@, @)", "sets.intersects(@, @)",
    "sets.equivalent(@, @)", "ip(@)", "cidr(@)", "isIP(@)", "@.containsIP(@)", "@.family()", "url(@)", "isURL(@)",
    "@.getHost()", "@.getQuery()", "format.dns1123Label().validate(@)", "format.named(@)", "@.includes(@)",
    "@.getFullYear()", "@.getHours(@)", "math.greatest(@, @)",
];

/// An expression made of fragments, each byte choosing one; the last bytes are texts and letters.
pub fn expression(bytes: &[u8]) -> String {
    let mut text = String::from("@");
    for &byte in bytes {
        let fragment = FRAGMENTS[usize::from(byte) % FRAGMENTS.len()];
        match text.find('@') {
            Some(position) => text.replace_range(position..=position, fragment),
            None => break,
        }
        if text.len() > 10_000 {
            break;
        }
    }
    text.replace('@', "x")
}
