import type { LookupAddress } from 'node:dns'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createRawServer, type Server } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { endlessInterimServer, interimServer, unaskedUpgrade } from '../../../lab/interim-answers.js'
import type { HostRules } from '../network/host-resolution.js'
import { fetchRemoteFile, type RemoteFile, type RemoteFileLimits } from '../network/remote-file.js'
import { folder, selfSigned, trustEverybody } from './kit.js'
import { policyOf } from './policy-of.js'

const here: LookupAddress = { address: '127.0.0.1', family: 4 }
const forever = new AbortController().signal

/** Every name is this machine, unless `lookup` says something else. */
const rules = (setting: string, lookup: HostRules['lookup'] = async () => [here]): HostRules => ({
  hostPolicy: policyOf(setting),
  lookup
})

async function listen(t: Test, server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function serve(t: Test, answer: RequestListener): Promise<number> {
  const server = createServer(answer)
  t.teardown(() => {
    server.closeAllConnections()
  })
  return await listen(t, server)
}

interface Fetched extends RemoteFile {
  readonly path: string
}

async function fetcher(t: Test) {
  const directory = await folder(t)
  let count = 0
  const fetch = async (
    url: string,
    hostRules: HostRules = rules('allow'),
    changes: Partial<RemoteFileLimits> = {}
  ): Promise<Fetched> => {
    const path = join(directory, String(count++))
    return {
      path,
      ...(await fetchRemoteFile(url, path, hostRules, {
        maxBytes: 2 ** 20,
        timeoutMs: 10_000,
        signal: forever,
        ...changes
      }))
    }
  }
  return { fetch, left: async () => await readdir(directory) }
}

test('a remote file is stored as the classic builder stores it', async t => {
  const port = await serve(t, (request, response) => {
    const headers: Record<string, string> =
      request.url === '/dated/app%20one.tar?x=/y'
        ? { 'last-modified': 'Tue, 15 Nov 1994 12:45:26 GMT' }
        : request.url === '/told/'
          ? { 'content-disposition': 'attachment; filename="../named.txt"' }
          : {}
    response.writeHead(200, headers).end(`it is ${request.url ?? ''}`)
  })
  const { fetch } = await fetcher(t)
  const dated = await fetch(`http://files.example:${port}/dated/app%20one.tar?x=/y`)
  t.match(dated, { name: 'app one.tar', bytes: 31, modifiedAt: new Date('1994-11-15T12:45:26Z') })
  t.equal(await readFile(dated.path, 'utf8'), 'it is /dated/app%20one.tar?x=/y')
  const { mode, mtime } = await stat(dated.path)
  t.equal(mode & 0o777, 0o600)
  t.same(mtime, new Date('1994-11-15T12:45:26Z'))
  t.match(await fetch(`http://files.example:${port}/told/`), { name: 'named.txt', modifiedAt: new Date(0) })
  for (const nameless of ['', '/', '/a/', '/a/%2e%2e%2f..', '/a/..%2f', '/x%2F..'])
    t.equal((await fetch(`http://files.example:${port}${nameless}`)).name, null, nameless)
})

test('a remote file on a private host is refused by address, with the same words whatever listens there', async t => {
  const silent = await listen(
    t,
    createRawServer(() => {})
  )
  const web = await serve(t, (_request, response) => {
    response.end('secret')
  })
  const banner = await listen(
    t,
    createRawServer(socket => {
      socket.end('SSH-2.0-OpenSSH_9.2\r\n')
    })
  )
  const { fetch, left } = await fetcher(t)
  const words = new Set<string>()
  for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', 'me.example']) {
    for (const port of [1, silent, web, banner]) {
      const error = await fetch(`http://${host}:${port}/x`, rules('deny')).then(
        () => undefined,
        (reason: Error) => reason
      )
      t.match(
        error,
        {
          code: 'E_SOURCE_HOST_PRIVATE',
          message: /the host of a remote file .* has the private or local address .*GIT_PRIVATE_HOSTS/
        },
        `${host}:${port}`
      )
      words.add(
        `${error?.message ?? ''}`.replaceAll(
          /(\[?::ffff:[\da-f:.]+\]?|127\.0\.0\.1|localhost|me\.example)/g,
          'it'
        )
      )
    }
  }
  t.equal(words.size, 1, [...words].join('\n'))
  const both: HostRules['lookup'] = async () => [
    { address: '93.184.216.34', family: 4 },
    { address: '10.0.0.8', family: 4 }
  ]
  await t.rejects(
    fetch('http://both.example/x', rules('deny', both)),
    { code: 'E_SOURCE_HOST_PRIVATE' },
    'one bad address of several is enough'
  )
  for (const address of ['169.254.169.254', '168.63.129.16', '192.0.0.192'])
    await t.rejects(fetch(`http://${address}/latest/meta-data/`), { code: 'E_SOURCE_HOST_METADATA' }, address)
  t.equal(
    (await fetch(`http://me.example:${web}/x`, rules('me.example'))).bytes,
    6,
    'one that the operator lists is fetched from'
  )
  await t.rejects(
    fetch(
      'http://none.example/x',
      rules('allow', async () => [])
    ),
    { code: 'E_SOURCE_HOST_UNKNOWN' }
  )
  t.same(await left(), ['28'], 'and nothing of the refused is left')
})

test('the connection goes to the address that was checked, whatever the name means a moment later', async t => {
  const port = await serve(t, (_request, response) => {
    response.end('checked')
  })
  let asked = 0
  const { fetch } = await fetcher(t)
  t.equal(
    (
      await fetch(
        `http://moving.invalid:${port}/x`,
        rules('127.0.0.1', async () => {
          asked++
          return [here]
        })
      )
    ).bytes,
    7
  )
  t.equal(asked, 1)
})

test('redirects are followed under the same rules, and take no credentials along', async t => {
  const seen: Array<string | undefined> = []
  const target = await serve(t, (request, response) => {
    seen.push(request.headers.authorization)
    response.end('there')
  })
  const port: number = await serve(t, (request, response) => {
    const to: Record<string, string> = {
      '/here': '/final',
      '/away': `http://two.example:${target}/file.bin`,
      '/round': '/round',
      '/metadata': 'http://169.254.169.254/',
      '/private': 'http://ten.example/x',
      '/ftp': 'ftp://x/y',
      '/bad': 'http://[x'
    }
    const location = to[request.url ?? '']
    if (location === undefined) {
      seen.push(request.headers.authorization)
      response.end('x')
    } else response.writeHead(302, { location }).end()
  })
  const { fetch, left } = await fetcher(t)
  const lookup: HostRules['lookup'] = async host =>
    host === 'ten.example' ? [{ address: '10.0.0.1', family: 4 }] : [here]
  const listed = rules('one.example two.example', lookup)
  t.match(await fetch(`http://one.example:${port}/away`, listed), { name: 'away', bytes: 5 })
  t.match(await fetch(`http://me:p%40ss@one.example:${port}/away`, listed), { bytes: 5 })
  t.same(seen, [undefined, undefined])
  await fetch(`http://me:p%40ss@one.example:${port}/here`, listed)
  t.equal(seen[2], `Basic ${Buffer.from('me:p@ss').toString('base64')}`)
  await t.rejects(fetch(`http://me:p%40ss@one.example:${port}/round`, listed), {
    code: 'E_REMOTE_FILE_REDIRECT',
    message: /^(?!.*p(%40|@)ss).*more than 10 redirects/
  })
  await t.rejects(fetch(`http://one.example:${port}/private`, listed), {
    code: 'E_SOURCE_HOST_PRIVATE',
    message: /ten\.example/
  })
  await t.rejects(fetch(`http://one.example:${port}/metadata`, rules('allow')), {
    code: 'E_SOURCE_HOST_METADATA'
  })
  await t.rejects(fetch(`http://one.example:${port}/ftp`, listed), {
    code: 'E_REMOTE_FILE_REDIRECT',
    message: /only http and https/
  })
  await t.rejects(fetch(`http://one.example:${port}/bad`, listed), {
    code: 'E_REMOTE_FILE_REDIRECT',
    message: /no address/
  })
  t.equal((await left()).length, 3)
})

test('a redirect that leaves the encrypted connection is not followed; one that enters it is', async t => {
  trustEverybody(t)
  let asked = 0
  const plain: number = await serve(t, (request, response) => {
    asked++
    if (request.url === '/up') response.writeHead(302, { location: `https://two.example:${secure}/x` }).end()
    else response.end('there')
  })
  const pem = selfSigned()
  const server = createTlsServer({ key: pem, cert: pem }, (request, response) => {
    if (request.url === '/down')
      response.writeHead(302, { location: `http://two.example:${plain}/x?signature=s3cret` }).end()
    else response.end('inside')
  })
  t.teardown(() => {
    server.closeAllConnections()
  })
  const secure = await listen(t, server)
  const { fetch, left } = await fetcher(t)
  await t.rejects(fetch(`https://one.example:${secure}/down`), {
    code: 'E_REMOTE_FILE_REDIRECT',
    message: /^(?!.*s3cret).*leaves the encrypted connection/
  })
  t.equal(asked, 0)
  t.match(await fetch(`http://one.example:${plain}/up`), { bytes: 6 })
  t.equal((await left()).length, 1)
})

test('what is too large, too slow, silent, broken off or not wanted any more leaves no file', async t => {
  const port = await serve(t, (request, response) => {
    if (request.url === '/endless') {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      }
      response.on('drain', more)
      more()
    }
    if (request.url === '/declared') response.writeHead(200, { 'content-length': 2 ** 40 }).write('x')
    if (request.url === '/silent') response.write('x')
    if (request.url === '/slow') {
      const dribble = setInterval(() => response.write('x'), 20)
      response.on('close', () => clearInterval(dribble))
    }
    if (request.url === '/cut') {
      response.writeHead(200, { 'content-length': 100 }).write('x', () => {
        response.destroy()
      })
    }
    if (request.url === '/missing') response.writeHead(404).end('no')
  })
  const { fetch, left } = await fetcher(t)
  const at = async (path: string, changes: Partial<RemoteFileLimits> = {}) =>
    await fetch(`http://files.example:${port}${path}`, undefined, changes)
  await t.rejects(at('/endless'), { code: 'E_REMOTE_FILE_SIZE', message: /larger than 1 MiB/ })
  await t.rejects(at('/declared'), { code: 'E_REMOTE_FILE_SIZE' })
  await t.rejects(at('/silent', { silenceMs: 200 }), {
    code: 'E_REMOTE_FILE_TIMEOUT',
    message: /sent nothing for 0\.2 s/
  })
  await t.rejects(at('/never', { silenceMs: 200 }), { code: 'E_REMOTE_FILE_TIMEOUT' })
  await t.rejects(at('/slow', { timeoutMs: 400, silenceMs: 300 }), {
    code: 'E_REMOTE_FILE_TIMEOUT',
    message: /longer than 0\.4 s/
  })
  await t.rejects(at('/cut'), { code: 'E_REMOTE_FILE_UNREACHABLE' })
  await t.rejects(at('/missing'), { code: 'E_REMOTE_FILE_STATUS', message: /answered 404/ })
  await t.rejects(
    fetch('http://files.example:1/x'),
    { code: 'E_REMOTE_FILE_UNREACHABLE', message: /ECONNREFUSED/ },
    'of a host that may be asked the reason is told'
  )
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  const cancelled = at('/silent', { signal: cancel.signal })
  cancel.abort(reason)
  await t.rejects(cancelled, reason)
  t.same(await left(), [])
  for (const wrong of [
    'file:///etc/passwd',
    'ftp://x/y',
    'http://',
    'https://x y/',
    '/etc/passwd',
    'http://x/\n'
  ])
    await t.rejects(fetch(wrong), { code: 'E_REMOTE_FILE_ADDRESS' }, wrong)
})

test('a file that is there already is neither written nor removed', async t => {
  const port = await serve(t, (_request, response) => {
    response.end('new')
  })
  const directory = await folder(t)
  await mkdir(join(directory, 'a'))
  await writeFile(join(directory, 'a', 'b'), 'old')
  await t.rejects(
    fetchRemoteFile(`http://x.example:${port}/b`, join(directory, 'a', 'b'), rules('allow'), {
      maxBytes: 10,
      timeoutMs: 5000,
      signal: forever
    }),
    { code: 'EEXIST' }
  )
  t.equal(await readFile(join(directory, 'a', 'b'), 'utf8'), 'old')
})

test('a host that sends interim answers without end, or speaks another protocol, is given up', async t => {
  const { fetch, left } = await fetcher(t)
  await t.rejects(fetch(`http://one.example:${await endlessInterimServer(t)}/x`), {
    code: 'E_REMOTE_FILE_UNREACHABLE',
    message: /interim answers \(1xx\) one after another and no final one/
  })
  await t.rejects(fetch(`http://one.example:${await interimServer(t, 0, unaskedUpgrade)}/x`), {
    code: 'E_REMOTE_FILE_UNREACHABLE',
    message: /another protocol that was not requested/
  })
  t.same(await left(), [])
})
