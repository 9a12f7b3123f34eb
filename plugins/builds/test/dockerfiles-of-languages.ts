import { serves, type WrittenDockerfile } from './written-dockerfile.js'

const nodeServer = `
const { createServer } = require('node:http')
const greet = require('greeter')
createServer((request, response) => response.end(greet(process.env.NODE_ENV) + ' as ' + process.getuid())).listen(8080)
`
const packageJson = JSON.stringify({
  name: 'shop',
  version: '1.0.0',
  dependencies: { greeter: 'file:greeter' }
})
const packageLock = JSON.stringify({
  name: 'shop',
  version: '1.0.0',
  lockfileVersion: 3,
  requires: true,
  packages: {
    '': { name: 'shop', version: '1.0.0', dependencies: { greeter: 'file:greeter' } },
    greeter: { version: '1.0.0' },
    'node_modules/greeter': { resolved: 'greeter', link: true }
  }
})

/** As the documentation of languages, frameworks and package managers has them. */
export const dockerfilesOfLanguages: readonly WrittenDockerfile[] = [
  {
    title: 'Node.js: npm ci with a cache mount, dependencies in a stage, another user',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1

ARG NODE_VERSION=20

FROM node:\${NODE_VERSION} AS deps
WORKDIR /app
COPY package.json package-lock.json ./
COPY greeter ./greeter
RUN --mount=type=cache,target=/root/.npm \\
    npm ci --omit=dev --no-audit --no-fund

FROM node:\${NODE_VERSION} AS runner
ENV NODE_ENV=production
WORKDIR /app
COPY --from=deps /app/node_modules ./node_modules
COPY . .
USER node
EXPOSE 8080
CMD ["node", "server.js"]
`,
      '.dockerignore': 'node_modules\nnpm-debug.log\nDockerfile*\n.git\n',
      'package.json': packageJson,
      'package-lock.json': packageLock,
      'greeter/package.json': '{"name": "greeter", "version": "1.0.0", "main": "index.js"}',
      'greeter/index.js': 'module.exports = mode => "hello from " + mode',
      'server.js': nodeServer
    },
    says: { '/': 'hello from production as 1000' },
    config: { User: 'node', Env: ['NODE_ENV=production'] }
  },
  {
    title: 'pnpm: stages upon a base, a cache mount with an id',
    files: {
      Dockerfile: `FROM pnpm:lab AS base
ENV PNPM_HOME="/pnpm"
ENV PATH="$PNPM_HOME:$PATH"
COPY . /app
WORKDIR /app

FROM base AS prod-deps
RUN --mount=type=cache,id=pnpm,target=/pnpm/store pnpm install --prod --frozen-lockfile

FROM base AS build
RUN --mount=type=cache,id=pnpm,target=/pnpm/store pnpm install --frozen-lockfile
RUN pnpm run build

FROM base
COPY --from=prod-deps /app/node_modules /app/node_modules
COPY --from=build /app/dist /app/dist
EXPOSE 8080
CMD [ "pnpm", "start" ]
`,
      'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
      'src/index.html': 'made by pnpm'
    },
    says: { '/': 'made by pnpm', '/built-with': 'install --frozen-lockfile\n' }
  },
  {
    title: 'Python: a virtual environment in a stage, and a cache mount of pip',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1.7
FROM python:lab AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \\
    PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/venv
ENV PATH="/opt/venv/bin:$PATH"
COPY requirements.txt .
RUN --mount=type=cache,target=/root/.cache/pip pip install -r requirements.txt

FROM python:lab
RUN addgroup -S app && adduser -S -G app -u 1001 app
ENV PATH="/opt/venv/bin:$PATH" VIRTUAL_ENV=/opt/venv
COPY --from=build /opt/venv /opt/venv
RUN test ! -e /root/.cache/pip
WORKDIR /srv
COPY --chown=app:app . .
USER app
EXPOSE 8080
CMD ["gunicorn", "--bind", "0.0.0.0:8080", "wsgi:app"]
`,
      'requirements.txt': 'gunicorn==22.0.0\nflask==3.0.3\n',
      'static/index.html': 'served by gunicorn'
    },
    says: { '/': 'served by gunicorn' },
    config: { User: 'app' },
    log: /Successfully installed flask==3\.0\.3/
  },
  {
    title: 'Go: modules by bind and cache mounts, and a binary upon nothing',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1
FROM --platform=$BUILDPLATFORM golang:lab AS build
WORKDIR /src
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod/ \\
    --mount=type=bind,source=go.mod,target=go.mod \\
    go mod download
RUN --mount=type=cache,target=/go/pkg/mod/ \\
    --mount=type=bind,target=. \\
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -o /out/httpd .
RUN test -n "$TARGETARCH" && test "$TARGETOS" = linux && printf "$TARGETOS" > /os

FROM scratch AS final
COPY --from=build /etc/passwd /etc/group /etc/
COPY --from=build /lib /lib
COPY --from=build /lib64 /lib64
COPY --from=build /usr/lib/ /usr/lib/
COPY --from=build /usr/lib64/ /usr/lib64/
COPY --from=build /out/httpd /httpd
COPY --from=build /os /www/os
COPY web /www
EXPOSE 8080
ENTRYPOINT ["/httpd", "-f"]
CMD ["-p", "8080", "-h", "/www"]
`,
      'go.mod': 'module example.com/server\n\ngo 1.22\n',
      'main.go': 'package main\n',
      'web/index.html': 'a binary'
    },
    says: { '/': 'a binary', '/os': 'linux' },
    config: { Entrypoint: ['/httpd', '-f'], Cmd: ['-p', '8080', '-h', '/www'] }
  },
  {
    title: 'Java: built by Maven, and run as a jar upon a run-time image',
    files: {
      Dockerfile: `FROM maven:lab AS build
WORKDIR /workspace
COPY pom.xml .
RUN --mount=type=cache,target=/root/.m2 mvn -B dependency:go-offline
COPY src src
RUN --mount=type=cache,target=/root/.m2 mvn -B -DskipTests package

FROM eclipse-temurin:lab
ARG JAR_FILE=target/*.jar
COPY --from=build /workspace/\${JAR_FILE} /app.jar
EXPOSE 8080
ENTRYPOINT ["java", "-XX:MaxRAMPercentage=75", "-jar", "/app.jar"]
`,
      'pom.xml': '<project/>',
      'src/main/java/index.html': 'from the jar'
    },
    says: { '/': 'from the jar' }
  },
  {
    title: 'PHP: packages by Composer, served by nginx',
    files: {
      Dockerfile: `FROM composer:lab AS vendor
WORKDIR /app
COPY composer.* ./
RUN composer install --no-dev --no-interaction --prefer-dist

FROM nginx:lab
COPY docker/nginx.conf /etc/nginx/nginx.conf
WORKDIR /var/www/html
COPY public public
COPY --from=vendor /app/vendor vendor
EXPOSE 8080
STOPSIGNAL SIGQUIT
USER 65534
CMD ["nginx", "-g", "daemon off;"]
`,
      'composer.json': '{}',
      'docker/nginx.conf': `pid /tmp/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server { listen 8080; root /var/www/html/public; location /vendor { root /var/www/html; } }
}
`,
      'public/index.html': 'behind nginx'
    },
    says: { '/': 'behind nginx', '/vendor/autoload.php': '<?php\n' },
    config: { StopSignal: 'SIGQUIT' }
  },
  {
    title: 'Ruby: as Rails makes it, with whole names of images',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1
# check=error=true

# Make sure RUBY_VERSION matches the Ruby version in .ruby-version
ARG RUBY_VERSION=lab
FROM docker.io/library/ruby:$RUBY_VERSION AS base

# Rails app lives here
WORKDIR /rails

# Set production environment
ENV RAILS_ENV="production" \\
    BUNDLE_DEPLOYMENT="1" \\
    BUNDLE_PATH="/usr/local/bundle" \\
    BUNDLE_WITHOUT="development"

# Throw-away build stage to reduce size of final image
FROM base AS build
COPY Gemfile Gemfile.lock ./
RUN bundle install && \\
    rm -rf ~/.bundle/ "\${BUNDLE_PATH}"/ruby/*/cache
COPY . .
# Adjust binfiles to be executable on Linux
RUN chmod +x bin/*

# Final stage for app image
FROM base
COPY --from=build "\${BUNDLE_PATH}" "\${BUNDLE_PATH}"
COPY --from=build /rails /rails

# Run and own only the runtime files as a non-root user for security
RUN addgroup -S -g 1000 rails && \\
    adduser -S -u 1001 -G rails -h /rails rails && \\
    chown -R 1001:1000 public
USER 1001:1000

ENTRYPOINT ["/rails/bin/docker-entrypoint"]
EXPOSE 8080
CMD ["bundle", "exec", "puma"]
`,
      Gemfile: 'gem "rails"\n',
      'Gemfile.lock': 'GEM\n',
      'bin/docker-entrypoint': '#!/bin/sh -e\nexec "${@}"\n',
      'public/index.html': 'on rails'
    },
    says: { '/': 'on rails' },
    config: { User: '1001:1000' }
  },
  {
    title: 'Rust: the registry and the target folder in cache mounts',
    files: {
      Dockerfile: `ARG APP_NAME=httpd
FROM rust:lab AS build
ARG APP_NAME
WORKDIR /app
RUN --mount=type=bind,source=src,target=src \\
    --mount=type=bind,source=Cargo.toml,target=Cargo.toml \\
    --mount=type=cache,target=/app/target/,sharing=locked \\
    --mount=type=cache,target=/usr/local/cargo/registry/ \\
    set -e; \\
    cargo build --release; \\
    cp ./target/release/$APP_NAME /bin/server

FROM alpine:lab AS final
ARG UID=10001
RUN adduser -D -H -g "" -h "/nonexistent" -s "/sbin/nologin" -u "\${UID}" appuser
USER appuser
COPY --from=build /bin/server /opt/httpd
COPY www /www
EXPOSE 8080
CMD ["/opt/httpd", "-f", "-p", "8080", "-h", "/www"]
`,
      'Cargo.toml': '[package]\nname = "httpd"\n',
      'src/main.rs': 'fn main() {}\n',
      'www/index.html': 'in rust'
    },
    says: { '/': 'in rust' }
  },
  {
    title: 'a site that Node.js builds and nginx serves',
    files: {
      Dockerfile: `FROM node:20 AS build
WORKDIR /app
COPY package*.json ./
RUN npm install --no-audit --no-fund
COPY . .
ARG VITE_TITLE="no title"
ENV VITE_TITLE=$VITE_TITLE
RUN npm run build

FROM nginx:lab
COPY nginx.conf /etc/nginx/nginx.conf
COPY --from=build --chown=65534:65534 /app/dist /usr/share/nginx/html
USER nobody
EXPOSE 8080
CMD ["nginx", "-g", "daemon off;"]
`,
      '.dockerignore': '**/node_modules\n**/dist\n',
      'package.json': '{"scripts": {"build": "node build.mjs"}}',
      'build.mjs': `import { mkdirSync, writeFileSync } from 'node:fs'
mkdirSync('dist')
writeFileSync('dist/index.html', process.env.VITE_TITLE)
`,
      'nginx.conf': `pid /tmp/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server { listen 8080; location / { root /usr/share/nginx/html; try_files $uri /index.html; } }
}
`,
      'dist/index.html': 'a build of the author'
    },
    variables: [{ key: 'VITE_TITLE', value: 'a title & more', is_secret: false }],
    says: { '/': 'a title & more', '/some/route': 'a title & more' }
  },
  {
    title: 'a folder of a repository of many, with a Dockerfile elsewhere in it',
    files: {
      'services/web/docker/production.Dockerfile': `FROM busybox:lab
WORKDIR /app
COPY src/ ./src
RUN test ! -e ../other && ls -R . && test ! -e src/private
${serves('/app/src')}`,
      'services/web/docker/production.Dockerfile.dockerignore': 'src/private\n',
      'services/web/.dockerignore': 'src\n',
      'services/web/src/index.html': 'web of many',
      'services/web/src/private': 'x',
      'services/other/index.html': 'x'
    },
    fields: { root_directory: 'services/web', dockerfile_path: 'docker/production.Dockerfile' },
    says: { '/': 'web of many' }
  }
]
