// Only its resource definitions are used: charts cannot be had without a registry.
module modelplane.ai/e2e/tools/provider-helm

go 1.26.0

require github.com/crossplane-contrib/provider-helm v1.2.0
