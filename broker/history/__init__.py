"""The history of jobs: files and live queues into the state, and what is made of it."""
