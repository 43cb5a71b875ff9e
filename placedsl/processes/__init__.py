"""Child processes: starting one, exchanging messages with it, ending it together with what it has started."""
