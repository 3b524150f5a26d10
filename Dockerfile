# rotorid with a C compiler, which it uses at run time. Logs and results are in /data:
#
#   docker build -t rotorid .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" -v rotorid-cache:/cache rotorid track flight.ulg --mass 1.5
#
# EXTRAS: extras to install, such as ros,lpv.
FROM python:3.11-slim

ARG EXTRAS=""

RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev make \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE MANIFEST.in constraints.txt /source/
COPY src /source/src
RUN PIP_CONSTRAINT=/source/constraints.txt PIP_BUILD_CONSTRAINT=/source/constraints.txt \
    python -m pip install --no-cache-dir "/source${EXTRAS:+[$EXTRAS]}" \
    && rm -rf /source

# compiled code is kept in a volume of its own, and for each user: rotorid runs none that others can write to
RUN mkdir --mode=1777 /data /cache
ENV HOME=/tmp XDG_CACHE_HOME=/cache
WORKDIR /data
USER nobody
VOLUME /cache
ENTRYPOINT ["rotorid"]
CMD ["--help"]
