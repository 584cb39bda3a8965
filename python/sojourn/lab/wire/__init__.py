"""The wire as a process: in a sandbox or between existing ends, controlled and observed."""
