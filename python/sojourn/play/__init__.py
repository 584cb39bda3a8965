"""The live page: a scenario under sliders, simulated again at every change.

`state` is what a page's address tells, read as from a stranger; `controls` is what can be changed;
`simulation` runs both queues within bounds; `shape` places nodes and links for the drawing; `turns`
lets a newer request end the older; `answer` puts them together; `server` is the door.
"""
