import { randomUUID } from 'node:crypto'
import { type AddressInfo, createServer as createRawServer } from 'node:net'
import type { Test } from 'tap'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { type Built, startDockerfileLab } from './dockerfile-lab.js'
import { fileServer, modified } from './file-server.js'

const from = 'FROM busybox:lab\n'

/** A port on which something is that is no web server; counts who connects. */
async function bannerPort(t: Test) {
  let connections = 0
  const server = createRawServer(socket => {
    connections++
    socket.on('error', () => {}).end('SSH-2.0-OpenSSH_9.2\r\n')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}

engineTest(
  'what an ADD fetches is as old as its host says, and is in the image only where the ADD puts it',
  async t => {
    const { build, lab } = startDockerfileLab(t, undefined, 'allow')
    const origin = await fileServer(t)
    const applicationId = randomUUID()
    const files = {
      Dockerfile: `${from}ADD ${origin}/a.txt?key=hidden /got/\nCOPY . /all\nRUN stat -c '%n %a %u:%g %Y' /got/*; cat /got/a.txt; ls -a /all /; date > /when\n`,
      'own.txt': 'x'
    }
    const first = await build(files, applicationId)
    t.equal(first.error?.message, undefined)
    t.ok(first.log.split('\n').includes(`/got/a.txt 600 0:0 ${modified.getTime() / 1000}`), first.log)
    t.match(first.log, /^it is \/a\.txt\?key=hidden/m)
    t.ok(
      first.log.split('\n').includes(`Fetching ${origin}/a.txt`),
      'the log names it without what may be a signature'
    )
    t.match(first.log, /^Fetched 1 KiB$/m)
    t.match(first.log, /^Step 3\/5 : ADD http/m)
    t.match(first.log, /^\/all:\n\.\n\.\.\nDockerfile\nown\.txt$/m, 'what COPY takes is what the author has')
    const again = await build(files, applicationId)
    t.equal(again.image?.id, first.image?.id, 'the same content is found in the cache of the engine')
    t.same(
      (await lab.runtime.images({ applicationId }))
        .flatMap(({ tags }) => tags)
        .filter(tag => tag.startsWith('busbar-build-')),
      [],
      'nothing of the fetching stays'
    )
  }
)

engineTest(
  'the address of an ADD on a private host is refused with its line, with the same words whatever listens there, and nobody connects',
  async t => {
    const { build, builds } = startDockerfileLab(t)
    const banner = await bannerPort(t)
    const words = new Set<string>()
    for (const port of [1, banner.port]) {
      for (const text of [
        `ADD http://inner.example:${port}/x /x`,
        `ARG P=${port}\nADD "http://inner.example:$P/x" /x`,
        `ENV U=http://inner.example:${port}\nADD $U /x/`
      ]) {
        const { error, log } = await build({ Dockerfile: `${from}${text}\n` })
        const line = text.split('\n').length + 1
        t.match(
          error,
          {
            code: 'E_SOURCE_HOST_PRIVATE',
            message: new RegExp(
              `^line ${line} of the Dockerfile Dockerfile: the host of a remote file inner\\.example has the private or local address 127\\.0\\.0\\.1.*GIT_PRIVATE_HOSTS`
            )
          },
          text
        )
        words.add((error?.message ?? '').replace(/^line \d/, ''))
        t.notMatch(log, /SSH|refused/)
      }
    }
    t.equal(words.size, 1, [...words].join('\n'))
    t.equal(banner.connections(), 0)
    t.equal(builds(), 0)
  }
)

engineTest(
  'an ADD whose file cannot be had, is too large or has no name is refused with its line',
  async t => {
    const { build, builds } = startDockerfileLab(t, undefined, 'allow')
    const origin = await fileServer(t, (request, response) => {
      if (request.url === '/none') response.writeHead(404).end()
      else if (request.url === '/moved')
        response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end()
      else response.end(Buffer.alloc(request.url?.startsWith('/half') === true ? 600 * 1024 : 1))
    })
    const refused = async (text: string): Promise<Built['error']> =>
      (await build({ Dockerfile: `${from}# a comment\n${text}\n` })).error
    t.match(await refused(`ADD ${origin}/none /x`), {
      code: 'E_REMOTE_FILE_STATUS',
      message:
        /^line 3 of the Dockerfile Dockerfile: the remote file .*\/none was not handed out: its host answered 404/
    })
    t.match(await refused(`ADD ${origin}/moved /x`), { code: 'E_SOURCE_HOST_METADATA', message: /^line 3 / })
    t.match(await refused(`ADD ${origin}/half1 ${origin}/half2 /x/`), {
      code: 'E_REMOTE_FILE_SIZE',
      message: /^line 3 .* larger than 1 MiB together, the checkout_mib/
    })
    for (const folder of ['/x/', '.', './', '/x/..', '$DIR'])
      t.match(
        await refused(`ADD ${origin}/ ${folder}`),
        {
          code: 'E_BUILD_DOCKERFILE',
          message:
            /^line 3 .* nothing tells the name of the file at .* write the name of the file into the destination/
        },
        folder
      )
    for (const [name, shown] of [
      ['.wh.x', /\.wh\.x/],
      ['a'.repeat(256), /aaa/]
    ] as const)
      t.match(await refused(`ADD ${origin}/${name} /x`), { code: 'E_BUILD_DOCKERFILE', message: shown })
    t.match(await refused('ADD http:// /x'), { code: 'E_REMOTE_FILE_ADDRESS', message: /^line 3 / })
    t.equal(builds(), 0, 'the engine is not asked')
    t.equal(
      await refused(`ADD ${origin}/ /x\nRUN test -f /x`),
      undefined,
      'with a file as its destination it needs no name'
    )
    t.equal(
      await refused(`ADD ${origin}/half1 /x\nADD ${origin}/half1 /y`),
      undefined,
      'the same address is fetched once'
    )
  }
)
