"""The live page: a scenario with controls, simulated in the browser after every change.

`catalogue` describes the scenarios, `files` are what a browser loads, `server` sends them to this
machine, and `address` reads the addresses of pages.
"""
