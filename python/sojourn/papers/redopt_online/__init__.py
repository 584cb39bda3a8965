"""REDopt on-line, our own study: `sojourn paper redopt-online`."""
