"""Sends requests one after another, and prints the time of each answer in milliseconds."""

import random
import socket
import sys
import time

host, port, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draws = random.Random(seed)  # noqa: S311 - the seed makes runs repeatable
with socket.create_connection((host, port)) as connection:
    answers = connection.makefile("rb")
    while True:
        length = draws.randint(100, 20_000)
        begin = time.monotonic()
        connection.sendall(b"%d\n" % length)
        answers.read(length)
        print(f"{length} bytes: {1e3 * (time.monotonic() - begin):.2f} ms", flush=True)
        time.sleep(draws.expovariate(10))  # a mean of 100 ms
