# advrisk in a container; docs/installation.md has variants: without CUDA, with a GPU, for reading runs only.
#     docker build --tag advrisk .
#     docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" advrisk run study.yaml
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
ARG EXTRAS=run
ARG PIP_EXTRA_INDEX_URL=
COPY constraints.txt /wheels/
COPY --from=build /wheels /wheels
RUN set -- /wheels/*.whl \
    && pip install --no-cache-dir --constraint /wheels/constraints.txt "advrisk[$EXTRAS] @ file://$1"
# Matplotlib and torch write caches, also where the user has no home.
ENV HOME=/tmp
WORKDIR /work
USER 65534:65534
ENTRYPOINT ["advrisk"]
CMD ["--help"]
