import { gzipSync } from 'node:zlib'
import { blockBytes, fileHeader } from '../context/tar-header.js'
import { serves, type WrittenDockerfile } from './written-dockerfile.js'

/** A tar with one small file. */
function tar(name: string, content: string): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([fileHeader(name, bytes.length), bytes, Buffer.alloc(3 * blockBytes - bytes.length)])
}

/** What a Dockerfile can say, as the documentation of Docker has it. */
export const dockerfilesOfFeatures: readonly WrittenDockerfile[] = [
  {
    title: 'scripts and files in heredocs',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1
FROM node:20
ARG WHO=world
RUN <<EOF
set -e
mkdir -p /www/sub
echo "hello $WHO" > /www/index.html
EOF
RUN cat <<-"TABS" > /www/sub/tabs
\tnot $EXPANDED
\tTABS
COPY <<one.txt <<two.txt /www/
the first, for \${WHO}
one.txt
the second
two.txt
COPY <<'RAW' /www/raw
\${WHO} \\ stays
RAW
RUN <<NODE
#!/usr/bin/env node
require('node:fs').writeFileSync('/www/by-node', process.version.slice(0, 3))
NODE
COPY --chmod=755 <<"ENTRY" /entrypoint
#!/bin/sh
exec "$@"
ENTRY
ENTRYPOINT ["/entrypoint"]
${serves('/www')}`
    },
    since: {
      docker: 23,
      refusal: /the Dockerfile Dockerfile is not valid: .*unknown instruction/i
    },
    says: {
      '/': 'hello world\n',
      '/sub/tabs': 'not $EXPANDED\n',
      '/one.txt': 'the first, for world\n',
      '/two.txt': 'the second\n',
      '/raw': '${WHO} \\ stays\n',
      '/by-node': 'v20'
    }
  },
  {
    title: 'linked copies with an owner and a mode, and a step without a network',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1
FROM busybox:lab AS assets
RUN mkdir /assets && echo assets > /assets/index.html
FROM busybox:lab
COPY --link --from=assets --chown=1000:1000 /assets /www
COPY --link --chmod=0640 --chown=1000:0 a.txt /www/a.txt
COPY --link --chmod=0755 bin/ /usr/local/bin/
RUN stat -c '%u:%g %a' /www/a.txt /www/index.html /usr/local/bin/tool > /www/modes && tool >> /www/modes
RUN --network=none test ! -e /sys/class/net/eth0
USER 1000
${serves('/www')}`,
      'a.txt': 'a\n',
      'bin/tool': '#!/bin/sh\necho "the tool runs"\n'
    },
    since: { docker: 23, refusal: /the Dockerfile Dockerfile is not valid: .*unknown flag: link/i },
    says: {
      '/': 'assets\n',
      '/a.txt': 'a\n',
      '/modes': '1000:0 640\n1000:1000 644\n0:0 755\nthe tool runs\n'
    }
  },
  {
    title: 'copies with a mode and an owner, patterns and lists',
    files: {
      Dockerfile: `FROM busybox:lab
WORKDIR /www
COPY --chmod=750 --chown=1000 run.sh /run.sh
COPY ["with space.txt", "./"]
COPY *.html pages/*.html ./
COPY --chown=node:node index.html owned.html
RUN stat -c '%u %a' /run.sh owned.html > modes
${serves('/www')}`,
      'run.sh': '#!/bin/sh\n',
      'with space.txt': 'a space\n',
      'index.html': 'index',
      'pages/two.html': 'two'
    },
    says: {
      '/': 'index',
      '/two.html': 'two',
      '/with%20space.txt': 'a space\n',
      '/modes': '1000 750\n1000 644\n'
    }
  },
  {
    title: 'ADD of archives, packed and not, and of what is none',
    files: {
      Dockerfile: `FROM busybox:lab
ADD site.tar.gz /www/
ADD plain.tar /www/plain/
ADD --chown=1000:1000 not.tar.txt /www/
RUN stat -c %u /www/not.tar.txt > /www/owner
${serves('/www')}`,
      'site.tar.gz': gzipSync(tar('index.html', 'from an archive')),
      'plain.tar': tar('deep/file', 'deep'),
      'not.tar.txt': 'no archive'
    },
    says: {
      '/': 'from an archive',
      '/plain/deep/file': 'deep',
      '/not.tar.txt': 'no archive',
      '/owner': '1000\n'
    }
  },
  {
    title: 'a secret as a file, in its place and elsewhere, and one that need not be there',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1
FROM busybox:lab
WORKDIR /www
RUN --mount=type=secret,id=NPM_TOKEN,target=/root/.npmrc,mode=0400 \\
    sha256sum /root/.npmrc | grep ^be31e426c67c && stat -c %a /root/.npmrc > mode
RUN --mount=type=secret,id=NPM_TOKEN --mount=type=secret,id=ABSENT \\
    test ! -e /run/secrets/ABSENT && wc -c < /run/secrets/NPM_TOKEN > size
RUN test ! -s /root/.npmrc && test ! -e /run/secrets/NPM_TOKEN && echo public > index.html
${serves('/www')}`
    },
    variables: [{ key: 'NPM_TOKEN', value: 'npm-s3cret-value', is_secret: true }],
    says: { '/': 'public\n', '/mode': '400\n', '/size': '16\n' }
  },
  {
    title: 'a secret as a variable, required',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1
FROM busybox:lab
RUN --mount=type=secret,id=API_KEY,env=API_KEY,required=true \\
    --mount=type=secret,id=API_KEY,env=OTHER_NAME \\
    mkdir /www && test "$OTHER_NAME" = "$API_KEY" && printf %s "$API_KEY" | wc -c > /www/index.html
RUN test -z "$API_KEY$OTHER_NAME"
${serves('/www')}`
    },
    variables: [{ key: 'API_KEY', value: 'very-secret-key', is_secret: true }],
    since: { docker: 27, refusal: /the Dockerfile Dockerfile is not valid: .*unexpected key 'env'/ },
    says: { '/': '15\n' },
    notInLog: /very-secret-key/
  },
  {
    title: 'bind mounts of the source, of a stage and of an image, a tmpfs',
    files: {
      Dockerfile: `FROM busybox:lab AS tools
RUN mkdir /tools && echo 'echo "made by a tool"' > /tools/make.sh
FROM busybox:lab
RUN --mount=type=bind,target=/src \\
    --mount=type=bind,from=tools,source=/tools,target=/tools \\
    --mount=type=bind,from=nginx:lab,source=/etc/nginx,target=/nginx \\
    mkdir /www && cp /src/site/* /www/ && sh /tools/make.sh > /www/made && test -s /nginx/mime.types
RUN --mount=type=bind,source=site,target=/site,rw \\
    echo changed > /site/index.html && cp /site/index.html /www/changed
RUN --mount=type=tmpfs,target=/scratch echo gone > /scratch/x
RUN test -z "$(find /scratch /tools /src /nginx /site -type f 2>/dev/null)"
${serves('/www')}`,
      'site/index.html': 'from a mount'
    },
    says: { '/': 'from a mount', '/made': 'made by a tool\n', '/changed': 'changed\n' }
  },
  {
    title: 'triggers of a base image',
    files: {
      Dockerfile: `FROM onbuild:lab\nRUN ls > listed\n${serves('/usr/src/app')}`,
      'index.html': 'triggers'
    },
    says: { '/': 'triggers', '/triggered': 'built upon triggers\n', '/listed': /triggered/ }
  },
  {
    title: 'triggers of a stage',
    files: {
      Dockerfile: `FROM busybox:lab AS parent
ONBUILD COPY . /www/
ONBUILD ARG GREETING=hello
ONBUILD RUN echo "$GREETING" > /www/index.html
FROM parent
${serves('/www')}`,
      tool: 'tool\n'
    },
    variables: [{ key: 'GREETING', value: 'good day', is_secret: false }],
    says: { '/': 'good day\n', '/tool': 'tool\n' }
  },
  {
    title: 'arguments before FROM, with defaults, and those that every build has',
    files: {
      Dockerfile: `ARG REGISTRY=docker.io/library
ARG BASE=busybox TAG
ARG VARIANT=\${TAG:-lab}
FROM --platform=\${TARGETPLATFORM} $REGISTRY/\${BASE}:\${VARIANT} AS final
ARG VARIANT
ARG BUILD_NUMBER
ARG TARGETPLATFORM
ARG BUILDPLATFORM
ENV BUILD="\${BUILD_NUMBER:+build $BUILD_NUMBER}" NONE="\${NOTHING:-nothing}"
WORKDIR /www
RUN echo "$VARIANT|$BUILD|$NONE|$([ "$TARGETPLATFORM" = "$BUILDPLATFORM" ] && echo same)" > index.html
${serves('/www')}`
    },
    variables: [{ key: 'BUILD_NUMBER', value: '42', is_secret: false }],
    says: { '/': 'lab|build 42|nothing|same\n' }
  },
  {
    title: 'a health check, a signal, a shell, volumes, labels and a user',
    files: {
      Dockerfile: `FROM alpine:lab
LABEL org.opencontainers.image.title="everything" \\
      org.opencontainers.image.description="says \\"all\\" of itself"
SHELL ["/bin/sh", "-euc"]
RUN ! (echo "$UNSET_VARIABLE") 2>/dev/null
WORKDIR /srv
WORKDIR www
RUN addgroup -g 2000 web && adduser -D -u 2000 -G web web && echo everything > index.html
VOLUME ["/data", "/cache"]
ENV EMPTY= QUOTED='single $HOME' LIST="a,b"
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s --retries=3 \\
  CMD wget -q -O /dev/null http://127.0.0.1:8080/ || exit 1
STOPSIGNAL SIGINT
USER web:web
EXPOSE 8080/tcp 9090/udp
ENTRYPOINT ["httpd", "-f"]
CMD ["-p", "8080"]
`
    },
    says: { '/': 'everything\n' },
    config: {
      User: 'web:web',
      WorkingDir: '/srv/www',
      StopSignal: 'SIGINT',
      Shell: ['/bin/sh', '-euc'],
      Volumes: { '/data': {}, '/cache': {} },
      ExposedPorts: { '8080/tcp': {}, '9090/udp': {} },
      Healthcheck: {
        Test: ['CMD-SHELL', 'wget -q -O /dev/null http://127.0.0.1:8080/ || exit 1'],
        Interval: 30e9,
        Timeout: 3e9,
        StartPeriod: 5e9,
        Retries: 3
      },
      Labels: { 'org.opencontainers.image.description': 'says "all" of itself' },
      Env: ['EMPTY=', 'QUOTED=single $HOME', 'LIST=a,b']
    }
  },
  {
    title: 'an ignore file that takes some in again',
    files: {
      Dockerfile: `FROM busybox:lab\nCOPY . /www\nRUN cd /www && find . -type f | sort > /tmp/files && mv /tmp/files .\n${serves('/www')}`,
      '.dockerignore': `# everything but the site
*
!site
!config/*.json
config/secret.json
site/**/*.map
!site/keep.map
`,
      'site/index.html': 'ignored well',
      'site/js/app.js': 'x',
      'site/js/app.js.map': 'x',
      'site/keep.map': 'x',
      'config/app.json': '{}',
      'config/app.yaml': 'x',
      'config/secret.json': '{}',
      'index.html': 'not this one',
      '.env': 'x'
    },
    says: {
      '/site/': 'ignored well',
      '/files': './config/app.json\n./site/index.html\n./site/js/app.js\n./site/keep.map\n'
    }
  },
  {
    title: 'stages that the last one does not need are not built',
    files: {
      Dockerfile: `FROM busybox:lab AS base
RUN mkdir /www && echo needed > /www/index.html

FROM base AS test
RUN echo the tests ran && exit 1

FROM registry.invalid/docs/builder:9 AS docs
RUN make docs

FROM base AS development
RUN --mount=type=cache,target=/x echo never

FROM base AS production
${serves('/www')}`
    },
    says: { '/': 'needed\n' },
    notInLog: /the tests ran|registry\.invalid/
  },
  {
    title: 'scripts over many lines, with comments in them, a shell with options, and lines as on Windows',
    files: {
      Dockerfile: `FROM busybox:lab
SHELL ["/bin/sh", "-o", "pipefail", "-c"]
RUN set -eux; \\
    \\
# a comment at the margin
    mkdir -p /www; \\
    # and one that is not
    for name in one two three; do \\
      echo "$name" >> /www/index.html; \\
    done; \\

    if ! false | true; then echo 'a pipe failed' >> /www/index.html; fi
run echo lower case >> /www/index.html && \\ \t
    echo 'a "quoted" \\$word' >> /www/index.html
${serves('/www')}`.replaceAll('\n', '\r\n')
    },
    says: { '/': 'one\ntwo\nthree\na pipe failed\nlower case\na "quoted" \\$word\n' }
  },
  {
    title: 'another escape character beside a syntax line',
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1
# escape=\`
FROM busybox:lab
RUN mkdir /www && \`
    echo 'C:\\dir' > /www/index.html
${serves('/www')}`
    },
    says: { '/': 'C:\\dir\n' }
  },
  {
    title: 'names of images in other forms',
    files: {
      Dockerfile: `FROM {untagged} AS without
RUN echo without a tag > /a
FROM {untagged}:latest AS latest
RUN echo latest > /b
FROM docker.io/library/{untagged} AS whole
RUN echo whole > /c
FROM index.docker.io/library/busybox:lab AS index
RUN echo index > /d
FROM library/busybox:lab
COPY --from=without /a /www/
COPY --from=latest /b /www/
COPY --from=whole /c /www/
COPY --from=index /d /www/
COPY --from=docker.io/library/node:20 /etc/passwd /www/e
RUN --mount=from=docker.io/library/{untagged}:latest,target=/f \\
    test -e /f/bin && cd /www && cat a b c d > index.html
${serves('/www')}`
    },
    says: { '/': 'without a tag\nlatest\nwhole\nindex\n' }
  }
]
