"""Everything that can be seen -> `Snapshot`. What cannot be read is unknown and named."""
