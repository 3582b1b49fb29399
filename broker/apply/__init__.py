"""A plan -> calls, each written down before and after; what ended unseen -> found out by looking."""
