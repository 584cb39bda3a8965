"""The live page: a scenario with controls, simulated in the browser after every change.

`catalogue` describes the scenarios, `files` has the files that a browser loads, `server` serves
them to this machine, and `address` reads the addresses of pages.
"""
