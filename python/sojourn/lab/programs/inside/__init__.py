"""Programs that run in the laboratory's hosts.

They import little, since each host starts several.
"""
