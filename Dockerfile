# The image holds one static program and nothing else: no shell, no libc.
# test/image proves the same layout without a container engine.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /out/zooraft ./cmd/zooraft \
 && mkdir -p /out/data /out/datalog

FROM scratch
COPY --from=build /out/zooraft /zooraft
COPY container/zoo.cfg /conf/zoo.cfg
# Empty folders that uid 1000 owns, so that a fresh volume takes its owner.
COPY --from=build --chown=1000:1000 /out/data /data
COPY --from=build --chown=1000:1000 /out/datalog /datalog
USER 1000:1000
VOLUME ["/data", "/datalog"]
# 2181 clients. 2888 and 3888 are for members of an ensemble, 8080 for the HTTP
# admin API: none of them is opened by a standalone server of this version.
EXPOSE 2181
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["/zooraft", "health", "/conf/zoo.cfg"]
ENTRYPOINT ["/zooraft"]
CMD ["serve", "/conf/zoo.cfg"]
