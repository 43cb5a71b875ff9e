"""What a placement costs and what it violates; shares no code with what finds it."""
