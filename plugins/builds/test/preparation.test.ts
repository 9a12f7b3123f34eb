import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { startGitServer } from '../../../lab/git-server.js'
import { startRegistry } from '../../../lab/registry.js'
import { engineTest } from '../../runtime-docker/test/lab.js'
import type { Builder } from '../api.js'
import { Workspaces } from '../context/workspace.js'
import { clock, folder, gitServer, log, recorder } from './kit.js'
import { gitSource, imageToken, setUp } from './preparation-lab.js'

engineTest(
  'a repository becomes an image: cloned, built, tagged, labelled, and nothing left on the disk',
  async t => {
    const { prepare, lab, commits, leftovers, applicationId } = await setUp(t)
    const server = await gitServer(t)
    const { url, sha } = await server.createRepository('app', {
      Dockerfile:
        'FROM busybox:lab\nARG MODE\nARG TOKEN\nCOPY . /app\nRUN echo "mode=$MODE token=$TOKEN"; cd /app && find . -type f | sort && ls -ln run.sh\nEXPOSE 3000\n',
      '.dockerignore': 'secret.txt\ndocs\n!docs/keep.md\n',
      'secret.txt': 'x',
      'docs/drop.md': 'x',
      'docs/keep.md': 'x',
      'run.sh': '#!/bin/sh\n'
    })
    const checkouts: number[] = []
    const context = { ...recorder(), onCheckoutSize: (bytes: number) => checkouts.push(bytes) }
    const deploymentId = randomUUID()
    const { reference, image } = await prepare(
      gitSource(url),
      {
        deploymentId,
        variables: [
          { key: 'MODE', value: 'production', isSecret: false },
          { key: 'TOKEN', value: 'very-secret-value', isSecret: true },
          { key: 'OTHER', value: 'unused', isSecret: false }
        ]
      },
      context
    )
    t.equal(reference, `lab-web-${applicationId.slice(0, 8)}-${imageToken}:${deploymentId.slice(0, 8)}`)
    t.same(image.exposedPorts, [3000])
    t.same(image.builtFor, { projectId: lab.projectId, applicationId })
    t.same(commits, [{ sha, message: 'first commit', author: 'Ada Lovelace' }])
    t.same(await leftovers(), [])
    t.ok(Math.max(...checkouts) > 0, 'whoever watches the disks is told how large the checkout is')

    const lines = context.lines.filter(({ stream }) => stream === 'stdout').map(({ msg }) => msg)
    t.ok(lines.includes('mode=production token='), 'the declared variable is there, the secret one is not')
    t.same(
      lines.filter(line => line.startsWith('./')),
      ['./.dockerignore', './Dockerfile', './docs/keep.md', './run.sh']
    )
    t.ok(
      lines.some(line => /^-rw-r--r--\s+1 0\s+0 /.test(line)),
      'files belong to root and have plain modes'
    )
    t.ok(
      context.lines.some(({ level, msg }) => level === 'warning' && msg.startsWith('ARG TOKEN is left empty'))
    )
    t.notMatch(context.text(), /unused|were not consumed/)
  }
)

engineTest(
  'a build from a directory of the repository sees that directory alone, with the Dockerfile and the ignore file it names',
  async t => {
    const { prepare } = await setUp(t)
    const server = await gitServer(t)
    const { url } = await server.createRepository('mono', {
      'root.txt': 'x',
      'apps/web/docker/prod.Dockerfile':
        'FROM busybox:lab\nCOPY . /app\nRUN cd /app && find . -type f | sort\n',
      'apps/web/docker/prod.Dockerfile.dockerignore': '*.tmp\n',
      'apps/web/.dockerignore': '*.txt\n',
      'apps/web/a.txt': 'x',
      'apps/web/b.tmp': 'x'
    })
    const context = recorder()
    await prepare(
      gitSource(url, { rootDirectory: './apps/web/', dockerfilePath: 'docker/prod.Dockerfile' }),
      {},
      context
    )
    t.same(
      context.lines.map(({ msg }) => msg).filter(msg => msg.startsWith('./')),
      ['./.dockerignore', './a.txt', './docker/prod.Dockerfile', './docker/prod.Dockerfile.dockerignore']
    )
  }
)

engineTest('an unchanged repository is built from the cache of the engine', async t => {
  const { prepare } = await setUp(t)
  const server = await gitServer(t)
  const { url } = await server.createRepository('app', {
    Dockerfile: `FROM busybox:lab\nCOPY . /app\nRUN echo ${randomUUID()} > /built\n`,
    'a.txt': 'x'
  })
  await prepare(gitSource(url))
  const context = recorder()
  await prepare(gitSource(url), {}, context)
  t.equal(context.lines.filter(({ msg }) => msg.includes('Using cache')).length, 3)
})

engineTest('an error in the Dockerfile names the line as the user counts it', async t => {
  const { prepare } = await setUp(t)
  const server = await gitServer(t)
  const { url } = await server.createRepository('app', {
    Dockerfile: 'FROM busybox:lab AS one\nRUN true\nFROM one\nFLY away\n'
  })
  await t.rejects(prepare(gitSource(url)), {
    code: 'E_BUILD_DOCKERFILE',
    message: /line 4: unknown instruction: FLY/
  })
})

engineTest('what a failed build leaves in the cache belongs to its application', async t => {
  const { prepare, lab, applicationId } = await setUp(t)
  const server = await gitServer(t)
  const { url } = await server.createRepository('app', {
    Dockerfile: 'FROM busybox:lab\nRUN echo kept > /a\nRUN exit 1\n'
  })
  await t.rejects(prepare(gitSource(url)), { code: 'E_BUILD_COMMAND' })
  const [left, ...more] = await lab.runtime.images({ applicationId })
  t.same(left?.tags, [])
  t.same(more, [])
  await lab.runtime.removeImage(left?.id ?? '')
  t.same(await lab.runtime.images({ applicationId }), [])
})

engineTest('a Dockerfile cannot hand its image to another application', async t => {
  const { prepare, lab, applicationId } = await setUp(t)
  const server = await gitServer(t)
  const { url } = await server.createRepository('app', {
    Dockerfile: `FROM busybox:lab\nLABEL application-id=${randomUUID()}\n`
  })
  await t.rejects(prepare(gitSource(url)), {
    code: 'E_BUILD_LABELS',
    message: /sets the label application-id/
  })
  t.same(await lab.runtime.images({ projectId: lab.projectId }), [])
  t.same(await lab.runtime.images({ applicationId }), [])
})

engineTest('what is wrong with the source is said before anything is built', async t => {
  const { prepare, leftovers } = await setUp(t)
  const server = await gitServer(t)
  const { url } = await server.createRepository('app', {
    'package.json': '{}',
    'deploy/Dockerfile.prod': 'FROM busybox:lab\n',
    'link/Dockerfile': { symlink: '/etc/passwd' },
    up: { symlink: '..' },
    'bad/Dockerfile': 'FROM busybox:lab\n',
    'bad/.dockerignore': 'a[\n'
  })
  await t.rejects(prepare(gitSource(url)), {
    code: 'E_SOURCE_DOCKERFILE',
    message:
      'there is no Dockerfile at Dockerfile; found were: bad/Dockerfile, deploy/Dockerfile.prod; set the Dockerfile path to one of them'
  })
  await t.rejects(prepare(gitSource(url, { rootDirectory: 'web' })), {
    code: 'E_SOURCE_ROOT',
    message: /web does not exist in the repository; directories there are: bad, deploy, link/
  })
  await t.rejects(prepare(gitSource(url, { rootDirectory: '../..' })), { status: 400, code: 'E_SOURCE_PATH' })
  await t.rejects(prepare(gitSource(url, { rootDirectory: 'up' })), { code: 'E_SOURCE_LINK' })
  await t.rejects(prepare(gitSource(url, { dockerfilePath: '/etc/passwd' })), {
    status: 400,
    code: 'E_SOURCE_PATH',
    message: /the Dockerfile path/
  })
  await t.rejects(prepare(gitSource(url, { dockerfilePath: 'link/Dockerfile' })), {
    code: 'E_SOURCE_LINK',
    message: /link\/Dockerfile is a symbolic link/
  })
  await t.rejects(prepare(gitSource(url, { rootDirectory: 'bad' })), { code: 'E_SOURCE_IGNORE' })
  await t.rejects(prepare(gitSource(url), { buildType: 'nixpacks' }), {
    status: 409,
    code: 'E_BUILD_TYPE_MISSING',
    message: /build type nixpacks: available are dockerfile/
  })
  t.same(await leftovers(), [])
})

engineTest(
  'secrets that a build prints are not in its log, neither is the token of the repository',
  async t => {
    const { prepare } = await setUp(t)
    const token = 'tok-0123456789'
    const secret = 'super-secret-4711'
    const root = await folder(t)
    const open = await startGitServer({ root })
    await open.createRepository('app', {
      Dockerfile: `FROM busybox:lab\nRUN echo the value is ${secret}; echo ${Buffer.from(secret).toString('base64')}; echo ${token}\n`
    })
    await open.close()
    const locked = await startGitServer({ root, auth: { username: token, password: '' } })
    t.teardown(async () => await locked.close())
    const url = `${locked.url}/app.git`
    const context = recorder()
    await prepare(
      gitSource(url, { token }),
      { variables: [{ key: 'S', value: secret, isSecret: true }] },
      context
    )
    t.notMatch(context.text(), secret)
    t.notMatch(context.text(), token)
    t.notMatch(context.text(), Buffer.from(secret).toString('base64').slice(0, 20))
    t.match(context.text(), 'the value is [REDACTED]')
  }
)

engineTest('a cancelled build is gone within a second: no process, no container, no folder', async t => {
  const { prepare, lab, leftovers } = await setUp(t)
  const server = await gitServer(t)
  const mark = randomUUID()
  const { url } = await server.createRepository('app', {
    Dockerfile: `FROM busybox:lab\nRUN : ${mark}; for i in $(seq 1 600); do echo tick $i; sleep 0.1; done\n`
  })
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  const context = recorder(cancel.signal)
  const building = prepare(gitSource(url), {}, context)
  await until(() => context.lines.find(({ msg }) => msg === 'tick 3'), 'the third tick')
  const abortedAt = Date.now()
  cancel.abort(reason)
  await t.rejects(building, reason)
  await until(
    async () =>
      (await lab.docker.listContainers({ all: true })).some(({ Command }) => Command.includes(mark))
        ? undefined
        : true,
    'the container to go'
  )
  t.ok(Date.now() - abortedAt < 10_000, `${Date.now() - abortedAt} ms`)
  t.same(await leftovers(), [])
})

engineTest('a build that takes longer than it may is stopped, and the error names the setting', async t => {
  const server = await gitServer(t)
  const { url } = await server.createRepository('app', { Dockerfile: 'FROM busybox:lab\nRUN sleep 60\n' })
  const hurried: Clock = {
    ...clock,
    sleep: async (ms, signal) => await clock.sleep(ms === 30 * 60_000 ? 1000 : ms, signal)
  }
  const { prepare } = await setUp(t, { clock: hurried })
  await t.rejects(prepare(gitSource(url)), {
    code: 'E_BUILD_TIMEOUT',
    message: /after 30 minutes, the limit of BUILD_TIMEOUT_MINUTES/
  })
})

engineTest('a contributed builder gets the source and the tag, and its failure leaves no folder', async t => {
  const server = await gitServer(t)
  const { url } = await server.createRepository('app', { 'web/package.json': '{}' })
  const seen: string[] = []
  const builder: Builder = {
    async build(request) {
      seen.push(...(await readdir(request.directory)), request.tag)
      throw new Error('not today')
    }
  }
  const { prepare, leftovers, applicationId } = await setUp(t, { builders: { static: builder } })
  await t.rejects(
    prepare(gitSource(url, { rootDirectory: 'web' }), {
      buildType: 'static',
      deploymentId: `12345678${randomUUID().slice(8)}`
    }),
    { message: 'not today' }
  )
  t.same(seen, ['package.json', `lab-web-${applicationId.slice(0, 8)}-${imageToken}:12345678`])
  t.same(await leftovers(), [])
})

engineTest('an image is pulled again for every deploy and pinned to its digest', async t => {
  const { prepare, lab } = await setUp(t)
  const registry = await startRegistry()
  t.teardown(async () => await registry.close())
  const name = `${registry.host}/team/app:1`
  await lab.docker.getImage('busybox:lab').tag({ repo: `${registry.host}/team/app`, tag: '1' })
  t.teardown(
    async () =>
      await lab.docker
        .getImage(name)
        .remove({ force: true })
        .catch(() => undefined)
  )
  const stream = await lab.docker.getImage(name).push({ authconfig: {} })
  await new Promise(resolve => lab.docker.modem.followProgress(stream, resolve))

  const context = recorder()
  const { reference, name: given, image } = await prepare({ type: 'image', image: name }, {}, context)
  t.match(reference, new RegExp(`^${registry.host}/team/app@sha256:[0-9a-f]{64}$`))
  t.same(image.layers, (await lab.runtime.image('busybox:lab'))?.layers)
  t.equal((await lab.runtime.image(given))?.id, image.id, 'a container can be made from it')
  t.match(context.text(), new RegExp(`Pulling ${name}[^]*Using ${reference}`))
  await t.rejects(
    prepare({ type: 'image', image: `${registry.host}/team/app:none` }),
    { code: 'E_IMAGE_NOT_FOUND' },
    'no other tag is taken instead'
  )
})

engineTest(
  'an image that only this machine has is used when no registry answers, and the log says so',
  async t => {
    const { prepare, lab, applicationId } = await setUp(t)
    const away = `127.0.0.1:1/lab-${applicationId}`
    await lab.docker.getImage('busybox:lab').tag({ repo: away, tag: '1' })
    t.teardown(
      async () =>
        await lab.docker
          .getImage(`${away}:1`)
          .remove({ force: true })
          .catch(() => undefined)
    )
    const context = recorder()
    const { reference, image } = await prepare({ type: 'image', image: `${away}:1` }, {}, context)
    t.equal(reference, image.id)
    t.ok(
      context.lines.some(
        ({ level, msg }) =>
          level === 'warning' &&
          /could not be reached.*The image of that name on this machine is used as it is/.test(msg)
      ),
      context.text()
    )
    await t.rejects(prepare({ type: 'image', image: `${away}:2` }), { code: 'E_REGISTRY_UNREACHABLE' })
  }
)

engineTest("an image is no source by its id, which may name anybody's", async t => {
  const { prepare, lab } = await setUp(t)
  const id = (await lab.runtime.image('busybox:lab'))?.id ?? ''
  // Names without a host are pulled from Docker Hub, which tests do not reach; if they do, it has none of these.
  for (const image of [id, id.slice('sha256:'.length, 'sha256:'.length + 12)]) {
    await t.rejects(prepare({ type: 'image', image }), { code: /^E_(REGISTRY|IMAGE)_/ }, image)
  }
})

engineTest(
  'what was built for one application is no source for another, although no registry answers',
  async t => {
    const { prepare, lab, applicationId } = await setUp(t)
    const server = await gitServer(t)
    const { url } = await server.createRepository('app', { Dockerfile: 'FROM busybox:lab\nRUN true\n' })
    const built = await prepare(gitSource(url))
    const away = `127.0.0.1:1/stolen-${applicationId}`
    await lab.docker.getImage(built.reference).tag({ repo: away, tag: '1' })
    await t.rejects(prepare({ type: 'image', image: `${away}:1` }, { applicationId: randomUUID() }), {
      status: 409,
      code: 'E_IMAGE_FOREIGN'
    })
    t.equal(
      (await prepare({ type: 'image', image: `${away}:1` })).reference,
      built.image.id,
      'its own it may use'
    )
  }
)

test('folders of processes that died are removed at the start, those in use stay', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-work-'))
  t.teardown(async () => await rm(directory, { recursive: true }))
  const workspaces = new Workspaces({ directory: async () => directory }, log)
  const work = join(directory, 'work')
  const dead = 'b0000000.999999-abc.xyz'
  const earlierSelf = `b1111111.${process.pid}-abc.xyz`
  const otherProcess = `b2222222.${process.ppid}-abc.xyz`
  const ancient = `b3333333.${process.ppid}-abc.old`
  for (const name of [dead, earlierSelf, otherProcess, ancient])
    await mkdir(join(work, name, 'source'), { recursive: true })
  await utimes(join(work, ancient), new Date('2020-01-01'), new Date('2020-01-01'))
  await workspaces.with('b4444444', async own => {
    await workspaces.removeLeftovers(new Date())
    t.same((await readdir(work)).sort(), [otherProcess, own.slice(work.length + 1)].sort())
  })
  await workspaces.settled()
  t.same(await readdir(work), [otherProcess])
})
