"""The Python interface: specs, models built in Python, answers, timelines."""
