//! The text that configures llm-d's endpoint picker (spec replica §6.5).
//!
//! The text's checksum is an annotation of the picker's pods, so every byte counts: changing one restarts the
//! pickers of a whole fleet.

use modelplane_api::model_replica::Engine;
use modelplane_api::template::ServingMode;

use super::{flag_value, serving_member};

/// Block size where the engine does not say.
pub const DEFAULT_BLOCK_SIZE: u32 = 16;

const HEAD: &str = "\
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: approx-prefix-cache-producer
  parameters:
    autoTune: false
    blockSizeTokens: ";

const UNIFIED: &str = "
    maxPrefixBlocksToMatch: 256
    lruCapacityPerServer: 31250
- type: prefix-cache-scorer
- type: queue-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: max-score-picker
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
";

const DISAGGREGATED: &str = "
    maxPrefixBlocksToMatch: 256
    lruCapacityPerServer: 31250
- type: prefix-cache-scorer
- type: disagg-headers-handler
- type: queue-scorer
- type: prefill-filter
- type: decode-filter
- type: max-score-picker
- type: prefix-based-pd-decider
  parameters:
    nonCachedTokens: 16
- type: disagg-profile-handler
  parameters:
    deciders:
      prefill: prefix-based-pd-decider
schedulingProfiles:
- name: prefill
  plugins:
  - pluginRef: prefill-filter
  - pluginRef: max-score-picker
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
- name: decode
  plugins:
  - pluginRef: decode-filter
  - pluginRef: max-score-picker
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
";

/// The configuration of the picker in front of engines with this key-value block size.
pub fn render(mode: ServingMode, block_size: u32) -> String {
    let tail = match mode {
        ServingMode::Unified => UNIFIED,
        ServingMode::PrefillDecode => DISAGGREGATED,
    };
    format!("{HEAD}{block_size}{tail}")
}

/// The key-value block size of an engine, guessed from its flags: vLLM's and SGLang's.
///
/// Prefix matching in the picker only works if its blocks are the engine's; `command` is not looked at.
pub fn block_size(engine: &Engine) -> u32 {
    let container = serving_member(engine)
        .and_then(|member| member.template.spec.as_ref())
        .and_then(|spec| spec.engine());
    let args = container.map(|container| container.args()).unwrap_or_default();
    let value = flag_value(args, &["--block-size", "--page-size"]);
    value.and_then(|text| text.trim().parse().ok()).filter(|size| *size > 0).unwrap_or(DEFAULT_BLOCK_SIZE)
}

#[cfg(test)]
mod tests {
    use modelplane_api::names::sha256_hex;

    use super::*;

    #[test]
    fn the_text_is_the_one_whose_checksum_the_specification_gives() {
        use ServingMode::{PrefillDecode, Unified};
        let cases = [
            (Unified, 16, 469, "20c1dfea3fc4ad41e335cc74edbeb1e8689a607bc4bf7395849ffd2cf0bb2ae1"),
            (Unified, 32, 469, "010ff255b687ac2274e523f27b23c75976b8b6150ed0e6eb27d0983838b6b0f9"),
            (Unified, 64, 469, "bf2146be008c2e12bb555e5406e1d419b2b8159aa3b2984623e385d3cf934007"),
            (PrefillDecode, 16, 921, "f715f3024f37e7042d42628f10cbb04c7da78b96dc65953dac0f289ef2c7ef98"),
            (PrefillDecode, 32, 921, "9749bd046481320bc67e9228da4b2c0dcf83ab87d1df97f3dce4bf662cca2aa4"),
            (PrefillDecode, 64, 921, "4c8ec1182e30b0662612a4d5fa3e2e25fcf50aabc0e6ecaf7d74911621f0ea44"),
        ];
        for (mode, size, bytes, checksum) in cases {
            let text = render(mode, size);
            assert_eq!((text.len(), sha256_hex(&text).as_str()), (bytes, checksum), "{mode:?} {size}");
        }
    }

    #[test]
    fn the_block_size_is_guessed_from_the_first_flag_that_gives_one() {
        let cases: &[(&[&str], u32)] = &[
            (&[], 16),
            (&["--block-size", "32"], 32),
            (&["--page-size=64", "--block-size=32"], 64),
            (&["--block-size=x", "--page-size=64"], 16),
            (&["--block-size"], 16),
            (&["--block-size=-1"], 16),
            (&["--block-size= 8 "], 8),
            (&["--block-sizes=8"], 16),
        ];
        for (args, want) in cases {
            let engine: Engine = serde_json::from_value(serde_json::json!({"name": "e", "members": [{
                "nodePoolName": "p",
                "template": {"spec": {"containers": [{"name": "engine", "image": "i", "args": args}]}},
            }]}))
            .expect("a readable engine");
            assert_eq!(block_size(&engine), *want, "{args:?}");
        }
    }
}
