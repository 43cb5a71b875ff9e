"""What can be said of a problem before any search: which operators without time another one carries along."""
