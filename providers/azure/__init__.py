"""Azure: on-demand capacity reservations through the real azure-mgmt-compute client."""
