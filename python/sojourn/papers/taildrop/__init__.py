"""The tail-drop study: `sojourn paper taildrop`."""
