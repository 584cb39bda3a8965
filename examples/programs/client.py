"""Sends requests one after the other and prints how long each answer took, in milliseconds."""

import random
import socket
import sys
import time

host, port, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draws = random.Random(seed)  # noqa: S311 - of a run that can be repeated
with socket.create_connection((host, port)) as connection:
    answers = connection.makefile("rb")
    while True:
        length = draws.randint(100, 20_000)
        begin = time.monotonic()
        connection.sendall(b"%d\n" % length)
        answers.read(length)
        print(f"{length} bytes: {1e3 * (time.monotonic() - begin):.2f} ms", flush=True)
        time.sleep(draws.expovariate(10))  # ten a second
