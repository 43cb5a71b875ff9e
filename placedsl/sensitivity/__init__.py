"""Why a placement is no better: which constraints bind, what the bottleneck is, and what further means would bring."""
