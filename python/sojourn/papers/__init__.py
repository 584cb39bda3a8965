"""Published studies: their scenarios, factors and findings, each as one command."""
