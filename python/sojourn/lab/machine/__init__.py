"""The machine that a laboratory runs on: what it has and lacks, what is changed and put back."""
