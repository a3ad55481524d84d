"""Whether detectors hold against every arm that broke a sample."""
