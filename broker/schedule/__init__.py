"""Who may start on what now: the queue as it is seen, fed to the allocator; grants, loans and reclaims out."""
