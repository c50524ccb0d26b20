"""The vocabulary of the origin: settings, costs, plans, saved teams, subscriptions."""
