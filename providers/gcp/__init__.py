"""Google Compute Engine through google-cloud-compute. `providers.gcp.adapter` takes seconds to import."""
