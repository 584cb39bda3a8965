"""The wire as a process: in a sandbox or between what exists already, asked and watched."""
