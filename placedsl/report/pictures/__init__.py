"""Pictures drawn with matplotlib."""

import logging

# What it says of its own cache, where that is made first or cannot be written, is nothing that a reader can act on.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
