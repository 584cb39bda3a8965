"""Code that runs inside the sandbox: init, its programs and their networks."""
