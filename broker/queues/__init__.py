"""Job sources, each read into `Job`; one module a format, one registry."""
