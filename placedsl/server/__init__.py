"""The language server: what an editor asks about a spec, answered over the protocol that editors share."""
