"""Many problems from one spec or several: what is to be run, where it runs, what is kept, the table of it."""
