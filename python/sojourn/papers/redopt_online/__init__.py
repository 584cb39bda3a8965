"""REDopt on-line, a study of ours: `sojourn paper redopt-online`."""
