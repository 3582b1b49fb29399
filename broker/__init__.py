"""The GPU capacity broker: queue in, capacity reservations bought and released safely."""

__version__ = "0.1.0"
