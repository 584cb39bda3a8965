"""Programs that run in the laboratory's hosts.

The programs import few modules, because each host starts several programs.
"""
