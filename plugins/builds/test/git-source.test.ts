import { randomBytes } from 'node:crypto'
import type { LookupAddress } from 'node:dns'
import { lstat, mkdir, readdir, readFile } from 'node:fs/promises'
import { request as forward } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Clock, Exec } from 'busbar/sdk'
import { type Test, test } from 'tap'
import { startGitServer } from '../../../lab/git-server.js'
import type { GitLimits } from '../git/git-command.js'
import { type CloneRequest, GitSource } from '../git/git-source.js'
import {
  folder,
  gitServer,
  processes,
  clock as realClock,
  recorder,
  selfSigned,
  trustEverybody
} from './kit.js'
import { policyOf } from './policy-of.js'

interface Setup {
  readonly policy?: string
  readonly limits?: Partial<GitLimits>
  readonly lookup?: (host: string) => Promise<readonly LookupAddress[]>
  readonly exec?: Exec
  readonly clock?: Clock
}

const noSuchHost = async (): Promise<never> => {
  throw Object.assign(new Error('x'), { code: 'ENOTFOUND' })
}

/** Clones into a fresh folder. */
async function setUp(
  t: Test,
  { policy = 'allow', limits, lookup = noSuchHost, exec = processes(t), clock = realClock }: Setup = {}
) {
  const git = new GitSource({
    exec,
    clock,
    lookup,
    limits: { checkoutBytes: 2 ** 30, fetchMs: 60_000, silenceSeconds: 60, ...limits },
    hostPolicy: policyOf(policy)
  })
  const root = await folder(t)
  await mkdir(join(root, 'home'))
  let count = 0
  return {
    root,
    async clone(repo: string, changes: Partial<CloneRequest> = {}, context = recorder()) {
      const directory = join(root, `source-${count++}`)
      const commit = await git.clone(
        { repo, branch: null, token: null, directory, home: join(root, 'home'), ...changes },
        context
      )
      return { commit, directory, files: (await readdir(directory)).sort(), log: context.text() }
    }
  }
}

test('a clone holds the newest commit of the default branch or of another, and tells who wrote it', async t => {
  const server = await gitServer(t)
  const { url, sha } = await server.createRepository('app', { 'a.txt': 'one', 'bin/run': 'x' })
  const featureSha = await server.commit('app', { 'b.txt': 'two' }, 'Add b\n\nAnd say why at length', {
    branch: 'feature/x',
    author: 'Grace Höpper'
  })
  const { clone } = await setUp(t)

  const main = await clone(url)
  t.same(main.commit, { sha, message: 'first commit', author: 'Ada Lovelace' })
  t.same(main.files, ['a.txt', 'bin'], 'without .git')
  t.match(main.log, /Cloning http:.*\/app\.git \(default branch\)/)
  t.match(main.log, new RegExp(`Commit ${sha.slice(0, 12)}: first commit \\(Ada Lovelace\\)`))

  const feature = await clone(url, { branch: 'feature/x' })
  t.same(feature.commit, { sha: featureSha, message: 'Add b', author: 'Grace Höpper' })
  t.same(feature.files, ['a.txt', 'b.txt', 'bin'])
  t.same((await clone(url, { branch: '' })).commit.sha, sha, 'an empty branch is the default one')
})

test('an older commit can be cloned by its name, also from a server that gives only branches', async t => {
  const server = await gitServer(t)
  const { url, sha } = await server.createRepository('app', { 'a.txt': 'one' })
  await server.commit('app', { 'a.txt': 'two', 'b.txt': 'new' }, 'second')
  const { clone } = await setUp(t)
  const old = await clone(url, { commit: sha })
  t.same(old.commit.sha, sha)
  t.same(old.files, ['a.txt'])

  // Protocol version 0 has servers that refuse a commit which is not the tip of a branch.
  const strict = await gitServer(t, {
    intercept: request => {
      delete request.headers['git-protocol']
      return false
    }
  })
  const repository = await strict.createRepository('app', { 'a.txt': 'one' })
  await strict.commit('app', { 'b.txt': 'new' }, 'second')
  t.same((await clone(repository.url, { commit: repository.sha })).files, ['a.txt'])
  await t.rejects(clone(repository.url, { commit: '0'.repeat(40) }), {
    code: 'E_SOURCE_COMMIT',
    message: /0{40} does not exist in .*forced push/
  })
})

test('each way to fail has an error of its own that names the remedy', async t => {
  const statuses: Readonly<Record<string, number>> = {
    '/forbidden.git': 403,
    '/broken.git': 503,
    '/gone.git': 410
  }
  const server = await gitServer(t, {
    intercept: (request, response) => {
      const path = (request.url ?? '').replace(/\/info.*/, '')
      if (path === '/cut.git') {
        response.destroy()
        return true
      }
      const status = statuses[path]
      if (status !== undefined) response.writeHead(status).end()
      return status !== undefined
    }
  })
  const { url } = await server.createRepository('app', { 'a.txt': 'one' })
  const empty = await server.createRepository('empty', {})
  const { clone } = await setUp(t)
  await t.rejects(clone(url, { branch: 'nope' }), {
    code: 'E_SOURCE_BRANCH',
    message: `branch nope does not exist in ${url}: push it, or set another branch`
  })
  await t.rejects(clone(empty.url), { code: 'E_SOURCE_EMPTY' })
  await t.rejects(clone(`${server.url}/none.git`), {
    code: 'E_SOURCE_NOT_FOUND',
    message: /none\.git was not found/
  })
  await t.rejects(clone(`${server.url}/gone.git`), { code: 'E_SOURCE_NOT_FOUND' })
  await t.rejects(clone(`${server.url}/forbidden.git`), { code: 'E_SOURCE_FORBIDDEN' })
  await t.rejects(clone(`${server.url}/broken.git`), { code: 'E_SOURCE_UNREACHABLE', message: /503/ })
  await t.rejects(clone(`${server.url}/cut.git`), { code: 'E_SOURCE_UNREACHABLE' })
  await t.rejects(clone('http://127.0.0.1:1/app.git'), {
    code: 'E_SOURCE_UNREACHABLE',
    message: /Failed to connect/
  })
  await t.rejects(clone(url.replace('http:', 'https:')), { code: 'E_SOURCE_TLS' })
  await t.rejects(clone('https://git.example.invalid/app.git'), {
    code: 'E_SOURCE_HOST_UNKNOWN',
    message: /git\.example\.invalid could not be resolved \(no such host\)/
  })
  await t.rejects(clone('git@github.com:team/app.git'), { status: 409, code: 'E_SOURCE_NO_KEY' })
  await t.rejects(clone('file:///etc'), { status: 400, code: 'E_SOURCE_ADDRESS' })
  await t.rejects(clone(url, { branch: '--upload-pack=touch /tmp/x' }), {
    status: 400,
    code: 'E_SOURCE_BRANCH_NAME'
  })
})

test('a private repository asks for a token, refuses a wrong one and takes the right one', async t => {
  const server = await gitServer(t, { auth: { username: 's3cret-token', password: '' } })
  const address = `${server.url}/app.git`
  const { clone } = await setUp(t)
  await t.rejects(clone(address), { code: 'E_SOURCE_CREDENTIALS', message: /does not exist or is private/ })
  await t.rejects(clone(address, { token: 'wrong' }), {
    code: 'E_SOURCE_CREDENTIALS',
    message: /refused the access token/
  })
  await t.rejects(clone(address, { token: 's3cret-token' }), { code: 'E_SOURCE_NOT_FOUND' })
  await t.rejects(
    clone(address.replace('//', '//s3cret-token@')),
    { code: 'E_SOURCE_NOT_FOUND' },
    'credentials written into the address work too'
  )
})

test('the token is neither an argument nor in a file nor in the log', async t => {
  const token = 'ghp_0123456789abcdefghij'
  const root = await folder(t)
  const open = await startGitServer({ root })
  const { sha } = await open.createRepository('app', { 'a.txt': 'one' })
  await open.close()
  const locked = await startGitServer({ root, auth: { username: token, password: '' } })
  t.teardown(async () => await locked.close())

  const real = processes(t)
  const argvs: string[] = []
  const encoded = Buffer.from(`${token}:`).toString('base64')
  let searched = root
  const filesWithToken: string[] = []
  const search = async () => {
    const { stdout } = await real.run(['grep', '-rlE', `${token}|${encoded}`, searched], {
      timeoutMs: 10_000
    })
    filesWithToken.push(...stdout.split('\n').filter(line => line !== ''))
  }
  const exec: Exec = {
    async run(argv, options) {
      argvs.push(argv.join(' '))
      const running = real.run(argv, options)
      await search()
      return await running.finally(search)
    }
  }
  const setup = await setUp(t, { exec })
  searched = setup.root
  const found = await setup.clone(`${locked.url}/app.git`, { token })
  t.equal(found.commit.sha, sha)
  t.same(filesWithToken, [])
  for (const text of [argvs.join('\n'), found.log]) {
    t.notMatch(text, token)
    t.notMatch(text, encoded)
  }
  t.match(argvs.join('\n'), 'fetch')
})

test('a redirect is followed within the rules: same checks, no credentials to another host', async t => {
  const seen: Array<string | undefined> = []
  const target = await gitServer(t, {
    intercept: request => {
      seen.push(request.headers.authorization)
      return false
    }
  })
  const { sha } = await target.createRepository('new-name', { 'a.txt': 'one' })
  const first = await gitServer(t, {
    intercept: (request, response) => {
      const [, from = '', rest = ''] = /^\/([\w-]+)\.git(\/.*)$/.exec(request.url ?? '') ?? []
      const to: Readonly<Record<string, string>> = {
        away: `${target.url}/new-name.git${rest}`,
        here: `/again.git${rest}`,
        again: `${target.url}/new-name.git${rest}`,
        round: `/round.git${rest}`,
        metadata: `http://169.254.169.254/latest.git${rest}`,
        elsewhere: 'https://example.com/login',
        odd: `https://%zz@example.com/x.git${rest}`,
        file: 'file:///etc/passwd'
      }
      const location = to[from]
      if (location !== undefined) response.writeHead(301, { location }).end()
      return location !== undefined
    }
  })
  const { clone } = await setUp(t)
  const found = await clone(`${first.url}/away.git`, { token: 'first-host-token' })
  t.equal(found.commit.sha, sha)
  t.match(found.log, `The repository has moved to ${target.url}/new-name.git`)
  t.ok(
    seen.length > 0 && seen.every(header => header === undefined),
    'the token stays with the host it is for'
  )
  t.equal((await clone(`${first.url}/here.git`)).commit.sha, sha)
  await t.rejects(clone(`${first.url}/round.git`), {
    code: 'E_SOURCE_REDIRECT',
    message: /more than 5 redirects/
  })
  await t.rejects(clone(`${first.url}/metadata.git`), { code: 'E_SOURCE_HOST_METADATA' })
  await t.rejects(clone(`${first.url}/elsewhere.git`), {
    code: 'E_SOURCE_REDIRECT',
    message: /example\.com\/login/
  })
  await t.rejects(clone(`${first.url}/file.git`), { code: 'E_SOURCE_REDIRECT' })
  await t.rejects(clone(`${first.url}/odd.git`), { code: 'E_SOURCE_ADDRESS' })
})

test('a redirect that leaves the encrypted connection is not followed, and no other on the way is taken for one', async t => {
  trustEverybody(t)
  const asked: string[] = []
  const plain = await gitServer(t, {
    intercept: request => {
      asked.push(request.url ?? '')
      return false
    }
  })
  const { sha } = await plain.createRepository('app', { 'a.txt': 'one' })
  const pem = selfSigned()
  const secure = createTlsServer({ key: pem, cert: pem }, (request, response) => {
    const [, to, rest = ''] = /^\/(down|along)\.git(\/.*)$/.exec(request.url ?? '') ?? []
    if (to === 'down') response.writeHead(301, { location: `${plain.url}/app.git${rest}` }).end()
    else if (to === 'along') response.writeHead(301, { location: `/app.git${rest}` }).end()
    else {
      const { method, headers } = request
      const onward = forward(`${plain.url}${request.url ?? ''}`, { method, headers }, answer => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      request.pipe(onward)
    }
  })
  await new Promise<void>(resolve => secure.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    secure.close()
    secure.closeAllConnections()
  })
  const address = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`
  const upward = await gitServer(t, {
    intercept: (request, response) => {
      response.writeHead(301, { location: `${address}${request.url ?? ''}` }).end()
      return true
    }
  })
  const real = processes(t)
  const { clone } = await setUp(t, {
    exec: {
      run: async (argv, options) =>
        await real.run(argv, { ...options, env: { ...options.env, GIT_SSL_NO_VERIFY: '1' } })
    }
  })
  await t.rejects(clone(`${address}/down.git`, { token: 'a-token' }), {
    code: 'E_SOURCE_REDIRECT',
    message: /leaves the encrypted connection/
  })
  t.same(asked, [], 'nobody was asked in the clear')
  t.equal((await clone(`${address}/along.git`)).commit.sha, sha)
  t.equal((await clone(`${upward.url}/app.git`)).commit.sha, sha)
})

test('private hosts are refused by address, also behind a name and behind a redirect', async t => {
  const server = await gitServer(t)
  const { url, sha } = await server.createRepository('app', { 'a.txt': 'one' })
  const lookup = async (host: string) =>
    host === 'two.example'
      ? [
          { address: '93.184.216.34', family: 4 },
          { address: '10.0.0.8', family: 4 }
        ]
      : [{ address: '127.0.0.1', family: 4 }]
  const { clone } = await setUp(t, { policy: 'deny', lookup })
  await t.rejects(clone(url), { code: 'E_SOURCE_HOST_PRIVATE', message: /127\.0\.0\.1 .*GIT_PRIVATE_HOSTS/ })
  await t.rejects(clone(`http://git.example:${server.port}/app.git`), {
    code: 'E_SOURCE_HOST_PRIVATE',
    message: /host git\.example has the private or local address 127\.0\.0\.1/
  })
  await t.rejects(
    clone(`http://2130706433:${server.port}/app.git`),
    { code: 'E_SOURCE_HOST_PRIVATE' },
    'an address in disguise'
  )
  await t.rejects(
    clone('http://two.example/app.git'),
    { code: 'E_SOURCE_HOST_PRIVATE', message: /10\.0\.0\.8/ },
    'one bad address of several is enough'
  )

  const listed = await setUp(t, { policy: 'git.example', lookup })
  t.equal((await listed.clone(`http://git.example:${server.port}/app.git`)).commit.sha, sha)
  await t.rejects(listed.clone(`http://other.example:${server.port}/app.git`), {
    code: 'E_SOURCE_HOST_PRIVATE'
  })
  const redirecting = await gitServer(t, {
    intercept: (request, response) => {
      response.writeHead(302, { location: `http://other.example:${server.port}${request.url}` }).end()
      return true
    }
  })
  await t.rejects(listed.clone(`http://git.example:${redirecting.port}/app.git`), {
    code: 'E_SOURCE_HOST_PRIVATE',
    message: /other\.example/
  })
})

test('git connects to the address that was checked, whatever the name means a moment later', async t => {
  const server = await gitServer(t)
  const { sha } = await server.createRepository('app', { 'a.txt': 'one' })
  let asked = 0
  // No name server knows this name: only the pinned address leads anywhere.
  const { clone } = await setUp(t, {
    lookup: async () => {
      asked++
      return [{ address: '127.0.0.1', family: 4 }]
    }
  })
  t.equal((await clone(`http://pinned.invalid:${server.port}/app.git`)).commit.sha, sha)
  t.equal(asked, 1)
})

test('a repository runs nothing and reaches nothing else: no hooks, filters, submodules or links followed', async t => {
  const server = await gitServer(t)
  const mark = join(await folder(t), 'ran')
  const { url } = await server.createRepository('app', {
    '.gitattributes': '* filter=evil\n*.bin filter=lfs diff=lfs\n',
    '.gitmodules': `[submodule "x"]\n\tpath = x\n\turl = ${server.url}/other.git\n`,
    '.githooks/post-checkout': `#!/bin/sh\ntouch ${mark}\n`,
    'large.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n',
    passwd: { symlink: '/etc/passwd' }
  })
  const { clone } = await setUp(t)
  const { directory, files } = await clone(url)
  t.same(files, ['.gitattributes', '.githooks', '.gitmodules', 'large.bin', 'passwd'])
  t.match(await readFile(join(directory, 'large.bin'), 'utf8'), /git-lfs/)
  t.ok((await lstat(join(directory, 'passwd'))).isSymbolicLink())
  await t.rejects(lstat(mark))
})

test('a repository that is small on the way and large on the disk is refused before it is unpacked', async t => {
  const server = await gitServer(t)
  const { url } = await server.createRepository('bomb', { zeros: Buffer.alloc(20 * 2 ** 20) })
  const { clone } = await setUp(t, { limits: { checkoutBytes: 10 * 2 ** 20 } })
  await t.rejects(clone(url), { code: 'E_SOURCE_SIZE', message: /larger than 10 MiB, the checkout_mib/ })
})

test('a fetch that grows beyond the limit is stopped under way', async t => {
  const server = await gitServer(t)
  const { url } = await server.createRepository('large', { noise: randomBytes(16 * 2 ** 20) })
  const real = processes(t)
  const commands: string[] = []
  const exec: Exec = {
    run: async (argv, options) => {
      commands.push(String(argv[argv[0] === 'git' ? 1 : 5]))
      return await real.run(argv, options)
    }
  }
  const { clone } = await setUp(t, {
    exec,
    limits: { checkoutBytes: 2 ** 20 },
    clock: { ...realClock, every: (_ms, run) => realClock.every(5, run) }
  })
  await t.rejects(clone(url), { code: 'E_SOURCE_SIZE', message: /larger than 1 MiB/ })
  t.same(commands, ['version', 'fetch'])
})

test('a clone ends at once when it is cancelled, also while the host is silent', async t => {
  const mute = createServer(() => {})
  await new Promise<void>(resolve => mute.listen(0, '127.0.0.1', resolve))
  t.teardown(() => mute.close())
  const { clone } = await setUp(t)
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  setTimeout(() => cancel.abort(reason), 300)
  const startedAt = Date.now()
  await t.rejects(
    clone(`http://127.0.0.1:${(mute.address() as AddressInfo).port}/app.git`, {}, recorder(cancel.signal)),
    reason
  )
  t.ok(Date.now() - startedAt < 10_000)
})

test('an old git is named with the version that is needed', async t => {
  const old = (version: string): Exec => ({
    run: async () => ({
      exitCode: 0,
      signal: null,
      stdout: `git version ${version}\n`,
      stderr: '',
      truncated: false,
      timedOut: false
    })
  })
  const clone = async (version: string, policy: string) =>
    await (await setUp(t, { exec: old(version), policy })).clone('http://127.0.0.1:1/app.git')
  await t.rejects(clone('2.25.1', 'allow'), {
    status: 503,
    code: 'E_SOURCE_GIT_VERSION',
    message: /git 2\.25 is too old: 2\.31/
  })
  await t.rejects(clone('2.34.1', 'deny'), {
    code: 'E_SOURCE_GIT_VERSION',
    message: /2\.37 or newer is needed to keep private hosts out/
  })
})

test('what a checkout takes is told, with the pack while there is one', async t => {
  const server = await gitServer(t)
  const { url } = await server.createRepository('sized', { file: 'x'.repeat(300_000) })
  const { clone } = await setUp(t)
  const sizes: number[] = []
  await clone(url, {}, { ...recorder(), onCheckoutSize: bytes => sizes.push(bytes) })
  t.ok(sizes.length >= 2)
  t.ok(Math.max(...sizes) >= 300_000)
  t.equal(sizes.at(-1), 300_000, 'the pack is gone')
})
