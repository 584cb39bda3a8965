"""Programs that run in the laboratory's hosts. They import little because many are started."""
