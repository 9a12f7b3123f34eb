import { mkdir, readdir } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { startGitServer } from '../../../lab/git-server.js'
import type { GitLimits } from '../git/git-command.js'
import { GitSource } from '../git/git-source.js'
import { clock, folder, gitServer, processes, rawRepository, recorder } from './kit.js'
import { policyOf } from './policy-of.js'

async function setUp(t: Test, limits: Partial<GitLimits> = {}) {
  const root = await folder(t)
  await mkdir(join(root, 'home'))
  const git = new GitSource({
    exec: processes(t),
    clock,
    lookup: async () => [],
    hostPolicy: policyOf('allow'),
    limits: { checkoutBytes: 2 ** 30, fetchMs: 60_000, silenceSeconds: 60, ...limits }
  })
  let count = 0
  return async (repo: string, context = recorder()) => {
    const directory = join(root, `source-${count++}`)
    await git.clone({ repo, branch: null, token: null, directory, home: join(root, 'home') }, context)
    return { directory, files: await readdir(directory), log: context.text() }
  }
}

const smart = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' })

test('a host that answers wrongly is told from one that is away', async t => {
  const answers: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => void>> = {
    html: (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Sign in</html>')
    },
    disguised: (_, response) => {
      smart(response).end('<html>Sign in</html>')
    },
    nothing: (_, response) => {
      smart(response).end()
    },
    error: (_, response) => {
      response.writeHead(500).end('oops')
    },
    said: (_, response) => {
      smart(response).end('002bERR the repository is being moved away\n')
    }
  }
  const server = await gitServer(t, {
    intercept: (request, response) => {
      const answer = answers[/^\/(\w+)\.git/.exec(request.url ?? '')?.[1] ?? '']
      answer?.(request, response)
      return answer !== undefined
    }
  })
  const clone = await setUp(t)
  await t.rejects(clone(`${server.url}/html.git`), {
    code: 'E_SOURCE_EMPTY',
    message: /not the address of a Git repository/
  })
  await t.rejects(clone(`${server.url}/disguised.git`), {
    status: 502,
    code: 'E_SOURCE_ANSWER',
    message: /does not answer as a Git server does: .*check the address/
  })
  await t.rejects(clone(`${server.url}/nothing.git`), {
    status: 502,
    code: 'E_SOURCE_DAMAGED',
    message: /hung up/
  })
  await t.rejects(clone(`${server.url}/error.git`), {
    status: 502,
    code: 'E_SOURCE_UNREACHABLE',
    message: /500/
  })
  await t.rejects(clone(`${server.url}/said.git`), {
    status: 502,
    code: 'E_SOURCE_GIT',
    message: /the repository is being moved away/
  })
})

test('a pack that ends too early or is damaged is no checkout, and says what to do', async t => {
  const root = await folder(t)
  const real = await startGitServer({ root })
  t.teardown(async () => await real.close())
  const { url } = await real.createRepository('app', {
    'a.txt': 'x'.repeat(5000),
    'b.txt': Array.from({ length: 5000 }, (_, index) => index).join(' ')
  })
  const { pathname } = new URL(url)
  const broken = async (change: (body: Buffer) => Buffer) =>
    await gitServer(t, {
      intercept: (request, response) => {
        const chunks: Buffer[] = []
        request
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('end', () => {
            const { host: _, connection: __, ...headers } = request.headers
            void fetch(real.url + (request.url ?? ''), {
              method: request.method ?? 'GET',
              headers: headers as Record<string, string>,
              ...(request.method === 'POST' ? { body: Buffer.concat(chunks) } : {})
            }).then(async answer => {
              const body = Buffer.from(await answer.arrayBuffer())
              const isPack = body.includes('PACK')
              response
                .writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
                .end(isPack ? change(body) : body)
            })
          })
        return true
      }
    })
  const clone = await setUp(t)
  const cut = await broken(body => body.subarray(0, body.length - 900))
  await t.rejects(clone(cut.url + pathname), {
    status: 502,
    code: 'E_SOURCE_DAMAGED',
    message: /incomplete or damaged: .*deploy again/
  })
  const bent = await broken(body => {
    const at = body.indexOf('PACK') + 400
    body[at] = (body[at] ?? 0) ^ 0xff
    return body
  })
  await t.rejects(clone(bent.url + pathname), { status: 502, code: 'E_SOURCE_DAMAGED' })
  const same = await broken(body => body)
  t.same(
    (await clone(same.url + pathname)).files.sort(),
    ['a.txt', 'b.txt'],
    'the one between does nothing else'
  )
})

test('a host that never answers, or only letter by letter, is given up', async t => {
  const mute = createServer(() => {})
  await new Promise<void>(resolve => mute.listen(0, '127.0.0.1', resolve))
  t.teardown(() => mute.close())
  const { port } = mute.address() as AddressInfo
  await t.rejects((await setUp(t, { silenceSeconds: 1 }))(`http://127.0.0.1:${port}/app.git`), {
    status: 502,
    code: 'E_SOURCE_UNREACHABLE',
    message: /Operation too slow.*check that its host is up/
  })

  const timers = new Set<NodeJS.Timeout>()
  t.teardown(() => {
    for (const timer of timers) clearInterval(timer)
  })
  const slow = await gitServer(t, {
    intercept: (_, response) => {
      smart(response)
      timers.add(setInterval(() => response.write('0'.repeat(500)), 100))
      return true
    }
  })
  await t.rejects((await setUp(t, { fetchMs: 1500 }))(`${slow.url}/app.git`), {
    status: 502,
    code: 'E_SOURCE_TIMEOUT',
    message: /was stopped after 1 minute/
  })
})

test('an answer without end is not held in memory', async t => {
  const server = await gitServer(t, {
    intercept: (_, response) => {
      smart(response)
      const block = Buffer.alloc(2 ** 20, 'x')
      const more = () => {
        while (!response.destroyed && response.write(block));
      }
      response.on('drain', more)
      more()
      return true
    }
  })
  await t.rejects((await setUp(t, { checkoutBytes: 2 ** 20 }))(`${server.url}/app.git`), {
    status: 409,
    code: 'E_SOURCE_SIZE',
    message: /more than 64 MiB of memory/
  })
})

test('branches without end are not held in memory either', async t => {
  const packet = (text: string) => (text.length + 4).toString(16).padStart(4, '0') + text
  const advertised = ['version 2\n', 'ls-refs=unborn\n', 'fetch=shallow\n', 'object-format=sha1\n']
  const server = await gitServer(t, {
    intercept: (request, response) => {
      if (request.method !== 'POST') {
        smart(response).end(
          `${packet('# service=git-upload-pack\n')}0000${advertised.map(packet).join('')}0000`
        )
        return true
      }
      let count = 0
      const more = () => {
        for (let isTaken = true; isTaken && !response.destroyed; ) {
          const refs = Array.from({ length: 200 }, () => {
            const number = String(count++).padStart(40, '0')
            return packet(`${number} refs/heads/${'b'.repeat(30_000)}${number}\n`)
          })
          isTaken = response.write(refs.join(''))
        }
      }
      response.on('drain', more).writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' })
      more()
      return true
    }
  })
  await t.rejects((await setUp(t, { checkoutBytes: 2 ** 20, fetchMs: 120_000 }))(`${server.url}/app.git`), {
    status: 409,
    code: 'E_SOURCE_SIZE',
    message: /more than 384 MiB of memory/
  })
})

test('a host that talks without end fills no log', async t => {
  const root = await folder(t)
  const real = await startGitServer({ root })
  const { url } = await real.createRepository('app', { 'a.txt': 'x' })
  await real.close()
  const band = (text: string) => `${(text.length + 5).toString(16).padStart(4, '0')}\u0002${text}`
  const server = await startGitServer({
    root,
    intercept: (request, response) => {
      // Before the pack, in the answer to the request for it.
      if (request.method !== 'POST') return false
      const write = response.write.bind(response) as (chunk: Buffer) => boolean
      response.write = ((chunk: Buffer) => {
        const at = chunk.indexOf('packfile\n')
        if (at < 0) return write(chunk)
        response.write = write as typeof response.write
        const talk = Array.from({ length: 5000 }, (_, line) => band(`blah ${line}\n`)).join('')
        return write(Buffer.concat([chunk.subarray(0, at + 9), Buffer.from(talk), chunk.subarray(at + 9)]))
      }) as typeof response.write
      return false
    }
  })
  t.teardown(async () => await server.close())
  const { log } = await (await setUp(t))(server.url + new URL(url).pathname)
  t.match(log, 'remote: blah 0')
  t.match(log, 'The host goes on; only 200 lines of it are kept')
  t.ok(log.split('\n').length < 250, `${log.split('\n').length} lines`)
})

test('a tree that is small to send and without end to write is refused before it is written', async t => {
  const clone = await setUp(t)
  const bomb = await rawRepository(t, ({ blob, tree }) => {
    let id = blob('x')
    let mode = '100644'
    for (let level = 0; level < 10; level++) {
      id = tree(Array.from({ length: 10 }, (_, index) => [mode, id, `d${index}`] as const))
      mode = '40000'
    }
    return id
  })
  await t.rejects(clone(bomb), {
    status: 409,
    code: 'E_SOURCE_SIZE',
    message: /more than 300000 files and directories/
  })

  // Few files, each below hundreds of directories.
  const deep = await rawRepository(t, ({ blob, tree }) => {
    let chain = tree([['100644', blob('x'), 'f']])
    for (let level = 0; level < 250; level++) chain = tree([['40000', chain, 'd']])
    return tree(
      Array.from(
        { length: 1500 },
        (_, index) => ['40000', chain, `e${String(index).padStart(4, '0')}`] as const
      )
    )
  })
  await t.rejects(clone(deep), {
    status: 409,
    code: 'E_SOURCE_SIZE',
    message: /longer than 32 MiB together/
  })
})

test('five gigabytes in a pack of some kilobytes are refused before they are written', async t => {
  const clone = await setUp(t, { checkoutBytes: 2 ** 31 })
  // The same file eighty times, which git sends once.
  const large = await rawRepository(t, ({ blob, tree }) => {
    const file = blob(Buffer.alloc(64 * 2 ** 20))
    return tree(Array.from({ length: 80 }, (_, at) => ['100644', file, String(at)] as const))
  })
  const context = {
    ...recorder(),
    most: 0,
    onCheckoutSize: (bytes: number) => (context.most = Math.max(context.most, bytes))
  }
  const before = process.memoryUsage().rss
  await t.rejects(clone(large, context), {
    status: 409,
    code: 'E_SOURCE_SIZE',
    message: /larger than 2048 MiB/
  })
  t.ok(context.most < 2 ** 20, `${context.most} bytes were written`)
  t.ok(process.memoryUsage().rss - before < 2 ** 28)
})

test('paths are counted as well: neither their length together nor that of one is without end', async t => {
  const clone = await setUp(t)
  const below = (
    id: string,
    tree: (entries: Array<readonly [string, string, string]>) => string,
    bytes: number
  ) => {
    for (let length = 0; length < bytes; length += 201) id = tree([['40000', id, 'd'.repeat(200)]])
    return id
  }
  const wide = await rawRepository(t, ({ blob, tree }) => {
    const empty = blob('')
    const files = Array.from({ length: 12_000 }, (_, n) => ['100644', empty, String(n)] as const)
    return below(tree(files), tree, 3000)
  })
  await t.rejects(clone(wide), { status: 409, code: 'E_SOURCE_SIZE', message: /longer than 32 MiB together/ })
  // git can write it, but nobody could remove it.
  const deep = await rawRepository(t, ({ blob, tree }) =>
    below(tree([['100644', blob('x'), 'f']]), tree, 4000)
  )
  await t.rejects(clone(deep), { status: 409, code: 'E_SOURCE_FILE_NAME', message: /File name too long/ })
})

test('a file counts whatever its name holds', async t => {
  const clone = await setUp(t, { checkoutBytes: 2 ** 20 })
  for (const name of ['a\u2028b', '\u2029', 'a\rb', 'a\tb', 'a\nb', '"', 'a\u0085b']) {
    const large = await rawRepository(t, ({ blob, tree }) =>
      tree([['100644', blob('\0'.repeat(2 ** 21)), name]])
    )
    await t.rejects(
      clone(large),
      { status: 409, code: 'E_SOURCE_SIZE', message: /larger than 1 MiB/ },
      encodeURIComponent(name)
    )
  }
})

test('names that the machine cannot write are named, all others are written', async t => {
  const clone = await setUp(t)
  const long = await rawRepository(t, ({ blob, tree }) => tree([['100644', blob('x'), 'n'.repeat(300)]]))
  await t.rejects(clone(long), {
    status: 409,
    code: 'E_SOURCE_FILE_NAME',
    message: /path that this machine cannot write: .*nnn.*File name too long; rename it/
  })
  const nested = await rawRepository(t, ({ blob, tree }) => {
    let id = tree([['100644', blob('x'), 'f']])
    for (let level = 0; level < 60; level++) id = tree([['40000', id, 'd'.repeat(100)]])
    return id
  })
  await t.rejects(clone(nested), { status: 409, code: 'E_SOURCE_FILE_NAME' })
  for (const name of ['.git', '..', 'a/../../b']) {
    const evil = await rawRepository(t, ({ blob, tree }) =>
      tree([
        ['100644', blob('x'), 'good'],
        ['100644', blob('y'), name]
      ])
    )
    await t.rejects(clone(evil), { code: /^E_SOURCE_/ }, name)
  }
  const odd = await rawRepository(t, ({ blob, tree }) =>
    tree([
      ['100644', blob('1'), 'README'],
      ['100644', blob('2'), 'ReadMe'],
      ['100644', blob('3'), 'line\nbreak'],
      ['100644', blob('4'), 'n'.repeat(255)],
      ['100644', blob('5'), 'readme'],
      ['100644', blob('6'), Buffer.from([0x74, 0xff, 0xfe])]
    ])
  )
  t.same((await clone(odd)).files.sort(), [
    'README',
    'ReadMe',
    'line\nbreak',
    'n'.repeat(255),
    'readme',
    't\uFFFD\uFFFD'
  ])
})

test('submodules are not fetched, and the log says so', async t => {
  const clone = await setUp(t)
  const url = await rawRepository(t, ({ blob, tree }) =>
    tree([
      ['100644', blob('[submodule "x"]\n\tpath = lib\n\turl = file:///etc\n'), '.gitmodules'],
      ['160000', '1'.repeat(40), 'lib'],
      ['160000', '2'.repeat(40), 'vendor']
    ])
  )
  const { files, log } = await clone(url)
  t.same(files.sort(), ['.gitmodules', 'lib', 'vendor'])
  t.match(
    log,
    'Submodules are not fetched, their directories are empty: lib, vendor; put the files into the repository itself'
  )
})
