# docker build --tag unmask . && docker run --rm --volume "$PWD:/data" unmask eval scores.txt --key trials
FROM python:3.11-slim
COPY pyproject.toml constraints.txt README.md LICENSE /unmask/
COPY src /unmask/src
RUN pip install --no-cache-dir --constraint /unmask/constraints.txt '/unmask[report,formats]' \
    && useradd --create-home unmask
USER unmask
WORKDIR /data
ENTRYPOINT ["unmask"]
CMD ["--help"]
