"""List prices and machine shapes: facts with their source and date, and the user's own prices, which win."""
