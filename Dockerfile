# docker build --build-arg VERSION="$(git describe --tags --always --dirty)" -t sluice .
# docker run -v "$PWD/sluice.yaml:/etc/sluice/sluice.yaml:ro" -p 8080:8080 sluice

FROM golang:1.26 AS build
ARG VERSION=development
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/gateway ./cmd/gateway
RUN mkdir -p /out/var/lib/sluice/state

FROM scratch
# To verify the certificates of https upstreams.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/gateway /gateway
# The state directory is ./state unless the configuration says otherwise.
COPY --from=build --chown=65532:65532 /out/var /var
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice/state
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["/gateway", "health", "--config", "/etc/sluice/sluice.yaml"]
ENTRYPOINT ["/gateway"]
CMD ["run", "--config", "/etc/sluice/sluice.yaml"]
