import type { LookupAddress } from 'node:dns'
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Exec } from 'busbar/sdk'
import { type Test, test } from 'tap'
import { startGitServer } from '../../../lab/git-server.js'
import { requireSshServer, startSshServer } from '../../../lab/ssh-server.js'
import { type CloneRequest, GitSource } from '../git/git-source.js'
import type { HostKey } from '../ssh/host-key.js'
import { fingerprintOf, makeOpenSshKey } from '../ssh/openssh-key.js'
import { clock, folder, processes, recorder } from './kit.js'
import { policyOf } from './policy-of.js'

const key = makeOpenSshKey('busbar:web')

/** As the database would keep them. */
function rememberedHosts() {
  const known = new Map<string, HostKey>()
  return {
    known,
    find: async (host: string) => known.get(host),
    add: async (hostKey: HostKey) => {
      if (!known.has(hostKey.host)) known.set(hostKey.host, hostKey)
    }
  }
}

interface Setup {
  readonly policy?: string
  readonly lookup?: (host: string) => Promise<readonly LookupAddress[]>
  readonly exec?: Exec
}

async function setUp(
  t: Test,
  { policy = 'allow', lookup = async () => [{ address: '127.0.0.1', family: 4 }], exec }: Setup = {}
) {
  const root = await folder(t)
  const git = new GitSource({
    exec: exec ?? processes(t),
    clock,
    lookup,
    limits: { checkoutBytes: 2 ** 30, fetchMs: 60_000, silenceSeconds: 60 },
    hostPolicy: policyOf(policy)
  })
  await mkdir(join(root, 'home'))
  const knownHosts = rememberedHosts()
  let count = 0
  return {
    root,
    known: knownHosts.known,
    async clone(repo: string, changes: Partial<CloneRequest> = {}, context = recorder()) {
      const directory = join(root, `source-${count++}`)
      const request = { repo, branch: null, token: null, directory, home: join(root, 'home') }
      try {
        const commit = await git.clone({ ...request, deployKey: key, knownHosts, ...changes }, context)
        return { commit, files: (await readdir(directory)).sort(), log: context.text() }
      } finally {
        t.same(await readdir(join(root, 'home')), [], 'no key is left behind')
      }
    }
  }
}

/** A server that lets the key in, with one repository. */
async function served(t: Test, options: { readonly message?: string } = {}) {
  const root = join(await folder(t), 'repositories')
  const repositories = await startGitServer({ root })
  t.teardown(async () => await repositories.close())
  const { sha } = await repositories.createRepository('app', { 'a.txt': 'one' })
  const server = await startSshServer(t)
  await server.allow(key.publicKey, options.message)
  const url = (host: string, name = 'app'): string =>
    `ssh://${server.user}@${host}:${server.port}${root}/${name}.git`
  return { root, repositories, server, sha, url }
}

test('a repository is cloned over SSH by the deploy key, and its host is known from then on', async t => {
  if (!(await requireSshServer(t))) return
  const { repositories, server, sha, url } = await served(t)
  const { clone, known } = await setUp(t)
  const host = `[git.example.com]:${server.port}`
  const first = await clone(url('git.example.com'))
  t.same(first.commit, { sha, message: 'first commit', author: 'Ada Lovelace' })
  t.same(first.files, ['a.txt'])
  const hostKey = await server.hostKey()
  const fingerprint = fingerprintOf(hostKey.split(' ')[1] ?? '')
  t.same(known.get(host), { host, key: hostKey, fingerprint })
  t.ok(first.log.includes(`${host} is known by its key ssh-ed25519 ${fingerprint} from now on`), first.log)

  const feature = await repositories.commit('app', { 'b.txt': 'two' }, 'second', { branch: 'feature/x' })
  const second = await clone(url('git.example.com'), { branch: 'feature/x' })
  t.same(second.commit.sha, feature)
  t.notMatch(second.log, /from now on/)
  t.same((await clone(url('git.example.com'), { commit: sha })).commit.sha, sha, 'a commit by its name')
  await t.rejects(clone(url('git.example.com'), { branch: 'nope' }), { code: 'E_SOURCE_BRANCH' })
})

test('a changed host key stops the clone, and says both fingerprints and what to do', async t => {
  if (!(await requireSshServer(t))) return
  const { server, url } = await served(t)
  const { clone, known } = await setUp(t)
  await clone(url('git.example.com'))
  const before = known.get(`[git.example.com]:${server.port}`)?.fingerprint ?? ''
  await server.changeHostKey()
  const after = fingerprintOf((await server.hostKey()).split(' ')[1] ?? '')
  for (const attempt of ['first', 'second'])
    await t.rejects(
      clone(url('git.example.com')),
      {
        status: 409,
        code: 'E_SOURCE_HOST_KEY',
        message: new RegExp(`${escaped(after)}.* ${escaped(before)}.*DELETE …/host-keys`)
      },
      attempt
    )
  known.clear()
  await clone(url('git.example.com'))
  t.equal(known.get(`[git.example.com]:${server.port}`)?.fingerprint, after)
})

test('a key that the host does not take is shown, to be added there', async t => {
  if (!(await requireSshServer(t))) return
  const { server, url } = await served(t)
  const { clone, known } = await setUp(t)
  const other = makeOpenSshKey('busbar:other')
  await t.rejects(clone(url('git.example.com'), { deployKey: other }), {
    status: 409,
    code: 'E_SOURCE_KEY_REFUSED',
    message: new RegExp(`add this public key as a deploy key.*: ${escaped(other.publicKey)}$`)
  })
  t.ok(known.has(`[git.example.com]:${server.port}`), 'the host is known all the same')
  await t.rejects(clone(url('git.example.com'), { deployKey: undefined }), {
    status: 409,
    code: 'E_SOURCE_NO_KEY',
    message: /has no deploy key.*POST …\/deploy-key/
  })
  await t.rejects(clone(url('git.example.com', 'none')), {
    status: 409,
    code: 'E_SOURCE_NOT_FOUND',
    message: /deploy key/
  })
})

test('private hosts are refused before ssh is run, and it connects to the address that was checked', async t => {
  if (!(await requireSshServer(t))) return
  const { server, url } = await served(t)
  const asked: string[] = []
  const ran: string[][] = []
  const real = processes(t)
  const exec: Exec = {
    run: async (argv, options) => {
      ran.push([...argv])
      return await real.run(argv, options)
    }
  }
  const lookup = async (host: string) => {
    asked.push(host)
    return [{ address: host === 'metadata.example.com' ? '169.254.169.254' : '127.0.0.1', family: 4 }]
  }
  const denied = await setUp(t, { policy: 'deny', lookup, exec })
  for (const host of ['git.example.com', '127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '2130706433'])
    await t.rejects(denied.clone(url(host)), { code: 'E_SOURCE_HOST_PRIVATE' }, host)
  await t.rejects(denied.clone('git@git.example.com:a/b.git'), { code: 'E_SOURCE_HOST_PRIVATE' })
  await t.rejects(denied.clone('git@metadata.example.com:a/b.git'), { code: 'E_SOURCE_HOST_METADATA' })
  t.notOk(
    ran.some(argv => argv.includes('fetch')),
    'nothing was fetched'
  )

  // No name server knows it: a second lookup would find nothing.
  asked.length = 0
  const listed = await setUp(t, { policy: 'git.invalid', lookup, exec })
  t.same((await listed.clone(url('git.invalid'))).files, ['a.txt'])
  t.same(asked, ['git.invalid'])
  t.ok(listed.known.has(`[git.invalid]:${server.port}`), 'under its name')

  // Of several addresses, the next is taken where one cannot be connected to.
  const several = await setUp(t, {
    lookup: async () => [
      { address: '127.0.0.99', family: 4 },
      { address: '127.0.0.1', family: 4 }
    ]
  })
  t.same((await several.clone(url('git.example.com'))).files, ['a.txt'])
})

test('a host that does not answer, or not as SSH, is said to be unreachable', async t => {
  if (!(await requireSshServer(t))) return
  const { server, url } = await served(t)
  const { clone } = await setUp(t)
  const wrong = createServer(socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await new Promise<void>(resolve => wrong.listen(0, '127.0.0.1', resolve))
  t.teardown(() => wrong.close())
  const { port } = wrong.address() as { readonly port: number }
  await t.rejects(clone(`ssh://git@git.example.com:${port}/a/b.git`), { code: 'E_SOURCE_UNREACHABLE' })
  await server.close()
  await t.rejects(clone(url('git.example.com')), {
    status: 502,
    code: 'E_SOURCE_UNREACHABLE',
    message: /refused/
  })
})

test('hostile addresses reach neither git nor ssh', async t => {
  const { clone } = await setUp(t, {
    exec: {
      run: async () => {
        throw new Error('run')
      }
    }
  })
  for (const hostile of [
    'git@-oProxyCommand=id:a/b',
    'ssh://-oProxyCommand=id/a',
    'ssh://git@host%20-oProxyCommand=id/a',
    'ssh://git@host/-u',
    "git@host:a';id;'b",
    'git@host:$(id)',
    'git+ssh://git@host/a',
    'ssh://git:secret@host/a'
  ])
    await t.rejects(
      clone(hostile),
      { status: 400, code: 'E_SOURCE_ADDRESS', message: /^(?!.*secret)/s },
      hostile
    )
})

test('what a host says before it is through takes no room in the log, and changes no verdict', async t => {
  if (!(await requireSshServer(t))) return
  const message = `${'Permission denied, or so I say '.repeat(50)}\n`.repeat(2000)
  const { sha, url } = await served(t, { message })
  const { clone } = await setUp(t)
  const cloned = await clone(url('git.example.com'))
  t.same(cloned.commit.sha, sha)
  t.notMatch(cloned.log, /or so I say/)
})

/** A program by the name of ssh that writes down how it was called, and fails. */
async function noted(t: Test): Promise<{ readonly exec: Exec; said(): Promise<string> }> {
  const directory = await folder(t)
  await writeFile(
    join(directory, 'ssh'),
    `#!/bin/sh
[ "$1" = -V ] && exit 0
{ for a in "$@"; do echo "$a"; done; echo "-- env"; env; echo "-- files"; ls -lR ../home; } > ${directory}/said
echo 'ssh: connect to host x port 22: Connection refused' >&2
exit 255
`
  )
  await chmod(join(directory, 'ssh'), 0o755)
  const real = processes(t)
  return {
    exec: {
      run: async (argv, options) =>
        await real.run(argv, {
          ...options,
          env: { ...options.env, PATH: `${directory}:${process.env.PATH ?? ''}` }
        })
    },
    said: async () => await readFile(join(directory, 'said'), 'utf8')
  }
}

test('ssh is given one key, one host and nothing of the machine', async t => {
  const { exec, said } = await noted(t)
  const { clone } = await setUp(t, { exec, lookup: async () => [{ address: '2001:db8::7', family: 6 }] })
  await t.rejects(clone('git@Git.example.com:owner/it-self_1.git'), { code: 'E_SOURCE_UNREACHABLE' })
  const [all = '', env = '', files = ''] = (await said()).split(/^-- \w+\n/m)
  const argv = all.trim().split('\n')
  t.same(argv.slice(0, 2), ['-F', '/dev/null'])
  for (const option of [
    'BatchMode=yes',
    'IdentitiesOnly=yes',
    'IdentityAgent=none',
    'ForwardAgent=no',
    'ClearAllForwardings=yes',
    'ProxyCommand=none',
    'UpdateHostKeys=no',
    'StrictHostKeyChecking=accept-new',
    'HostName=2001:db8::7',
    'HostKeyAlias=git.example.com'
  ])
    t.ok(argv.includes(option), option)
  t.same(argv.slice(-2), ['git@git.example.com', "git-upload-pack 'owner/it-self_1.git'"])
  t.notMatch(`${all}${env}`, /PRIVATE KEY|b3BlbnNzaC/, 'the key is in no argument and no variable')
  t.notMatch(env, /SSH_AUTH_SOCK|SSH_ASKPASS/)
  t.match(files, /^drwx------.* ssh$[\s\S]*^-rw------- .* key$/m)
})

test('a machine without ssh says so', async t => {
  const real = processes(t)
  const { clone } = await setUp(t, {
    exec: {
      run: async (argv, options) =>
        await real.run(argv[0] === 'ssh' ? ['no-such-program-as-ssh'] : argv, options)
    }
  })
  await t.rejects(clone('git@git.example.com:a/b.git'), {
    status: 503,
    code: 'E_SOURCE_SSH_MISSING',
    message: /openssh-client/
  })
})

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
