"""The history of jobs: what was asked for, when it started and when it left. No part of the ledger of purchases."""
