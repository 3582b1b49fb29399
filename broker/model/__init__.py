"""The words of the domain as inert values. Imports nothing of ours; everybody may import it."""
