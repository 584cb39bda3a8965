"""The study of tail drop against RED: `sojourn paper taildrop`."""
