# docker build -t sojourn .
# docker run --rm -v "$PWD:/work" sojourn compare home.toml
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN make wheel

FROM python:3.13-slim-bookworm
RUN --mount=type=bind,from=build,source=/src/dist,target=/dist \
    pip install --no-cache-dir "$(ls /dist/sojourn-*.whl)[report]" && useradd --uid 1000 --create-home sojourn
USER sojourn
WORKDIR /work
ENTRYPOINT ["sojourn"]
CMD ["--help"]
