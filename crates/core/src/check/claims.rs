//! Whether the claims of a member resolve on the nodes of a pool.

use std::collections::BTreeMap;

use modelplane_cel::device::Selector;

use crate::schedule::{Claimable, MemberPlacement, PoolIndex, Problem};

/// Compares the claims of a placed member with what the deployment asks for and the pool has.
///
/// Every request either is claimed, from a device class whose devices satisfy it and are enough for all claims
/// through that class, or is satisfied by a synthetic device.
pub(super) fn resolve(
    problem: &Problem<'_>,
    pool: PoolIndex,
    engine: usize,
    member: usize,
    placed: &MemberPlacement<'_>,
) -> Result<(), String> {
    let requests = problem.deployment.spec.template.spec.engines[engine].members[member].devices();
    let profile = problem.facts.devices.profile(problem.facts.pool(pool).profile);
    let devices: Vec<_> =
        profile.devices.iter().map(|device| problem.facts.devices.device(*device)).collect();
    let mut per_class: BTreeMap<&str, i64> = BTreeMap::new();
    for request in requests {
        let claim = placed.claims.iter().find(|claim| claim.request == request.name);
        let wanted = match claim {
            Some(claim) => {
                if claim.count != request.count()
                    || !claim.selectors.iter().copied().eq(request.expressions())
                {
                    return Err(format!("the claim of request {} differs from the request", request.name));
                }
                let total = per_class.entry(claim.device_class).or_default();
                *total = total.saturating_add(claim.count);
                Claimable::Through(claim.device_class)
            }
            None => Claimable::Synthetic,
        };
        let selectors: Vec<Selector> = request
            .expressions()
            .map(Selector::compile)
            .collect::<Result<_, _>>()
            .map_err(|e| e.to_string())?;
        let suits = devices.iter().any(|device| {
            device.claim == wanted
                && device.count >= request.count()
                && selectors.iter().all(|selector| {
                    device.prepared.as_ref().is_ok_and(|prepared| selector.matches(prepared) == Ok(true))
                })
        });
        if !suits {
            return Err(format!("no device satisfies request {}", request.name));
        }
    }
    if let Some(claim) = placed.claims.iter().find(|claim| !requests.iter().any(|r| r.name == claim.request))
    {
        return Err(format!("claim {} was never requested", claim.request));
    }
    for (class, total) in per_class {
        let of_class = devices.iter().filter(|device| device.claim == Claimable::Through(class));
        let available = of_class.fold(0i64, |sum, device| sum.saturating_add(device.count));
        if total > available {
            return Err(format!("claims {total} devices of class {class} where a node has {available}"));
        }
    }
    Ok(())
}
