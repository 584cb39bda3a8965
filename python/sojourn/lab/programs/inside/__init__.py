"""Programs of ours that run in the laboratory's hosts. They import little: many are started."""
