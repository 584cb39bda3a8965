"""Our study of REDopt on-line, which adapts RED: `sojourn paper redopt-online`."""
