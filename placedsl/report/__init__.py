"""What is shown: summaries, JSON, explanations, pictures."""
