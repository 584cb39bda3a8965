"""A video call as a source: video frames at regular times, each sent as a burst of packets."""

import sojourn


@sojourn.source("video", rate="2mbit", frames=30, spread="20%", longest="1200b")
class Video:
    """Frames with normally distributed lengths, in packets of at most `longest` bytes."""

    def __init__(self, params, draws):
        self.params, self.draws = params, draws
        self.gap = 1_000_000_000 // params.frames
        self.left = self.length()

    def length(self):
        """Returns the length of a frame in bytes.

        The sum of twelve uniform draws is almost normally distributed.
        """
        deviation = sum(self.draws.uniform() for _ in range(12)) - 6
        mean = self.params.rate / 8 / self.params.frames
        return max(1, round(mean * (1 + self.params.spread * deviation)))

    def next(self, now):
        if self.left == 0:
            now, self.left = now + self.gap, self.length()
        size = min(self.left, self.params.longest)
        self.left -= size
        return now, size
