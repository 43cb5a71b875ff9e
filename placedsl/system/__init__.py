"""What placedsl has to do with the system that it runs on: files, signals, its own installation."""
