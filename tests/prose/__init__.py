"""The project's English: passages that a person reads, and rules for them."""
