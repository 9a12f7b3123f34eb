/** A Dockerfile as people write them, and files beside it. */
interface Ordinary {
  readonly title: string
  readonly files: Readonly<Record<string, string>>
}

const from = 'FROM busybox:lab\n'
const file = (title: string, Dockerfile: string, files: Readonly<Record<string, string>> = {}): Ordinary => ({
  title,
  files: { 'a.txt': 'a\n', 'dir/b.txt': 'b\n', ...files, Dockerfile }
})

/** Each must give the image that the docker command makes of it. */
export const ordinary: readonly Ordinary[] = [
  file('one line', from),
  file('no newline at the end', 'FROM busybox:lab\nCMD ["true"]'),
  file(
    'a node application',
    `FROM node:20
# Dependencies first
WORKDIR /app
COPY a.txt ./
RUN node -e "require('fs').writeFileSync('made', 'x')" && ls
COPY . .
ENV NODE_ENV=production PORT=3000
EXPOSE 3000
USER node
CMD ["node", "server.js"]
`
  ),
  file(
    'notes after the files that are copied last, and a user before them',
    `FROM busybox:lab
ARG PORT=3000
ENV HEALTH=/healthz
RUN mkdir -p /etc && echo app:x:1234:1234::/:/bin/sh >> /etc/passwd && echo app:x:1234: >> /etc/group
WORKDIR /app
COPY a.txt ./
USER app
COPY --chown=app dir ./dir
EXPOSE $PORT \${PORT}/udp
STOPSIGNAL SIGINT
HEALTHCHECK --interval=5s CMD wget -q -O - http://127.0.0.1:3000$HEALTH
ENTRYPOINT ["sh", "-c"]
ADD a.txt /app/again.txt
CMD cat a.txt "$HEALTH"
`
  ),
  file(
    'two stages',
    `FROM busybox:lab AS builder
WORKDIR /src
COPY . .
RUN cat a.txt dir/b.txt > out
FROM busybox:lab
COPY --from=builder /src/out /out
ENTRYPOINT ["cat", "/out"]
`
  ),
  file(
    'stages by number, by name in capitals, and upon each other',
    `FROM busybox:lab as Base
RUN echo base > /base
FROM base AS second
RUN echo second > /second
FROM scratch
COPY --from=0 /base /base
COPY --from=SECOND /second /second
COPY --from=busybox:lab /bin/busybox /busybox
CMD ["/busybox", "cat", "/base"]
`
  ),
  file(
    'ARG before FROM, with a default and in a stage',
    `ARG VERSION=lab
ARG IMAGE="busybox"
FROM \${IMAGE}:\${VERSION}
ARG VERSION
ARG OTHER=o-\${VERSION}
RUN echo "$VERSION $OTHER" > /versions
ENV SEEN=$VERSION
`
  ),
  file(
    'ARGs in one line',
    'ARG A=busybox B=lab\nFROM $A:$B\nARG A C="x y" D=\'$A\'\nRUN echo "$A $C $D" > /args\n'
  ),
  file(
    'COPY with an owner, patterns and several sources',
    `${from}RUN echo app:x:1000:1000::/:/bin/sh >> /etc/passwd && echo app:x:1000: >> /etc/group
COPY --chown=app:app a.txt dir/b.* /copied/
COPY --chown="1000:1000" [".", "/all here/"]
COPY dir /dir
ENV WHERE=/x
COPY ./*.txt $WHERE/
`
  ),
  file(
    'ADD of files',
    `${from}ENV NAME=a
ADD a.txt /added.txt
ADD "\${NAME}.txt" /expanded.txt
ADD ./*.txt dir/ /added/
ADD ["$NAME.txt", "/list.txt"]
`
  ),
  file(
    'a shell, a list and brackets that are neither',
    `${from}SHELL ["/bin/sh", "-e", "-c"]
RUN [ -f /etc/passwd ] && echo yes > /yes
RUN ["/bin/sh", "-c", "echo \\"list\\" > /list"]
CMD [ "sh", "-c", "echo \\u0041" ]
`
  ),
  file(
    'commands in the shell form',
    `${from}ENTRYPOINT exec top -b
CMD echo "hello  world" $HOME
`
  ),
  file(
    'a health check with flags',
    `${from}HEALTHCHECK --interval=5m --timeout=3s \\
  --start-period=10s --retries=2 \\
  CMD wget -q -O - http://localhost/ || exit 1
`
  ),
  file(
    'a health check as a list, and one that is taken back',
    `FROM busybox:lab AS a
HEALTHCHECK CMD ["true"]
FROM a
HEALTHCHECK NONE
`
  ),
  file(
    'ENV in the old and the new form',
    `${from}ENV OLD some  value "in quotes"
ENV A=1 B="two words" C=three\\ words D='$A' E="\${A}x" F=
ENV PATH $PATH:/opt/bin
`
  ),
  file(
    'labels',
    `${from}LABEL maintainer="Ada <ada@example.com>"
LABEL "com.example.vendor"="ACME Inc." com.example.version=1.0 \\
      org.opencontainers.image.source=https://example.com/a
LABEL description This is the old form
`
  ),
  file(
    'comments and empty lines in continuations',
    `${from}RUN echo one > /lines && \\
    # a comment
    echo two >> /lines && \\

    echo three >> /lines && \\
  # another \\
    echo four >> /lines
`
  ),
  file(
    'spaces and tabs after the continuation',
    `${from}RUN echo a > /a && \\ \t
\techo b >> /a\t
  COPY\ta.txt   /tab.txt
`
  ),
  file(
    'quotes and escapes in commands',
    `${from}RUN echo \\"quoted\\" 'it''s' "a \\$b \\\\ c" > /quotes && printf 'x\\ty\\n' >> /quotes
RUN echo "continued \\
in a string" >> /quotes
`
  ),
  file(
    'lines that end as on Windows',
    'FROM busybox:lab\r\n# comment\r\nRUN echo a > /a && \\\r\n    echo b >> /a\r\n\r\nCMD ["cat", "/a"]\r\n'
  ),
  file('a byte order mark at the beginning', '\uFEFFFROM busybox:lab\nRUN echo x > /x\n'),
  file(
    'another escape character',
    `# escape=\`
FROM busybox:lab
RUN echo one \`
  two > /a
WORKDIR /a\\b
ENV A=\`"x\`" B=c:\\dir\\
`
  ),
  file(
    'directives and comments before FROM',
    '# syntax=docker/dockerfile:1\n# a comment = not a directive\n# escape=`\nFROM busybox:lab\nRUN echo a \\\n  b > /a\n'
  ),
  file('lower case', 'from busybox:lab as x\nrun echo x > /x\nenv A=b\nworkdir /w\ncmd ["cat", "/x"]\n'),
  file(
    'everything else',
    `${from}MAINTAINER Ada Lovelace <ada@example.com>
WORKDIR /srv
WORKDIR app
VOLUME /data /more
VOLUME ["/list"]
EXPOSE 80 443/tcp 53/udp
ENV PORT=8080
EXPOSE $PORT
STOPSIGNAL SIGQUIT
USER 1000:1000
`
  ),
  file(
    'triggers of a stage',
    `FROM busybox:lab AS tools
RUN echo tool > /tool
FROM busybox:lab AS base
ONBUILD RUN echo trigger > /trigger
ONBUILD COPY --from=tools /tool /tool
ONBUILD ENV TRIGGERED=yes
FROM base
ONBUILD COPY . /src
`
  ),
  file(
    'shifts and here-strings that are no heredocs',
    `${from}RUN echo $((1<<3)) $(( 1 << 4 )) "a <<b" > /shifts
`
  ),
  file('an ignore file that names the Dockerfile', `${from}COPY . /all\n`, {
    '.dockerignore': 'Dockerfile\n.dockerignore\ndir\n'
  }),
  file(
    'letters beyond ASCII',
    `${from}# grüße\nRUN echo "größe 日本 🎉\u00a0x" > /ü\nLABEL größe.example=1\n`.replace(
      'LABEL größe.example=1\n',
      'LABEL a="größe"\nENV Ü=ß\n'
    )
  ),
  file(
    'a command over many lines',
    `${from}RUN set -e; \\\n${Array.from({ length: 200 }, (_, at) => `    echo line ${at} >> /many; \\\n`).join('')}    true\n`
  )
]

/** The same, with files from a server at `origin` that knows every path but those that end in a slash. */
export const ordinaryFetching = (origin: string): readonly Ordinary[] => [
  file(
    'ADD of addresses',
    `${from}ARG VERSION=1.0
RUN echo app:x:1000:1000::/:/bin/sh >> /etc/passwd && echo app:x:1000: >> /etc/group && mkdir /there
WORKDIR /work
ADD ${origin}/tool.tar /opt/tool
ADD ${origin}/tool-\${VERSION}.tar ${origin}/b%20c%2A.txt?x=y /opt/many/
ADD --chown=app:app ${origin}/owned /opt/
ADD ["${origin}/list", "a b"]
ADD ${origin}/here .
ADD ${origin}/below /there
COPY . /all/
USER 1000
ADD ${origin}/tool.tar /opt/again
`
  ),
  file(
    'ADD of an address upon a stage, and nothing else',
    `FROM busybox:lab AS a
ENV FILE=x
FROM a
ADD ${origin}/$FILE /$FILE/
`
  ),
  file(
    'ADD of an address upon nothing',
    `FROM scratch
ADD ${origin}/x /x
`
  )
]
