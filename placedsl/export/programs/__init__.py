"""The program as a file or a script, one file per format."""
