"""Code that runs inside the sandbox: init, which starts programs and configures hosts."""
