//! What the published schemas accept beyond the newer shape of the API.
use serde_json::Value;

use crate::kind::KindInfo;

/// Extends the schema.
pub(super) fn accept(_info: &KindInfo, _schema: &mut Value) {}
