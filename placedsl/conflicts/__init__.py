"""Why a problem has no placement: a set of constraints that cannot hold together, and what would repair it."""
