import { randomUUID } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createRawServer, type Server } from 'node:net'
import { PassThrough, type Readable } from 'node:stream'
import { type Builder, builders, imagePreparation } from 'busbar/api/builds'
import { type Contributions, definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { extract } from 'tar-stream'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { RegistryGate } from '../registry/registry-gate.js'
import { realmsIn } from '../registry/registry-probe.js'
import { startDockerfileLab, tree } from './dockerfile-lab.js'
import { folder, recorder, selfSigned } from './kit.js'
import { policyOf } from './policy-of.js'

const forever = new AbortController().signal
const pem = selfSigned()

async function listen(t: Test, server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A registry as far as its door goes. */
async function door(t: Test, answer: RequestListener): Promise<number> {
  const server = createTlsServer({ key: pem, cert: pem }, answer)
  t.teardown(() => {
    server.closeAllConnections()
  })
  return await listen(t, server)
}

/** 127.0.0.1 stands for the addresses of the world: a name that leads there is looked at as a public one. */
const setting = '127.0.0.1 listed.example'
const hosts: Record<string, string> = { 'ten.example': '10.0.0.1', 'metadata.example': '169.254.169.254' }
const gate = new RegistryGate({
  hostPolicy: policyOf(setting),
  lookup: async host => {
    if (host.endsWith('.invalid')) throw Object.assign(new Error('none'), { code: 'ENOTFOUND' })
    return [{ address: hosts[host] ?? '127.0.0.1', family: 4 }]
  }
})
const admit = async (image: string) => await gate.admit(image, forever)

engineTest(
  'where private hosts are denied, the pull from one is refused with the same words whatever listens there, and the engine asks nobody',
  async t => {
    let connections = 0
    const count = (server: Server): Server =>
      server.on('connection', () => {
        connections++
      })
    const ports = {
      closed: 1,
      silent: await listen(t, count(createRawServer(() => {}))),
      banner: await listen(
        t,
        count(
          createRawServer(socket => {
            socket.end('SSH-2.0-OpenSSH_9.2\r\n')
          })
        )
      ),
      web: await listen(
        t,
        count(
          createServer((_request, response) => {
            response.writeHead(404).end('no registry')
          })
        )
      ),
      tls: await listen(
        t,
        count(
          createTlsServer({ key: pem, cert: pem }, (_request, response) => {
            response.end('{}')
          })
        )
      )
    }
    const k = await createTestKernel({ environment: { GIT_PRIVATE_HOSTS: 'deny' } })
    t.teardown(async () => await k.close())
    const words = new Set<string>()
    for (const [what, port] of Object.entries(ports)) {
      for (const host of ['127.0.0.1', 'localhost']) {
        const context = { ...recorder(), onCommit: async () => {} }
        const error = await k
          .service(imagePreparation)
          .prepare(
            {
              applicationId: randomUUID(),
              deploymentId: randomUUID(),
              projectId: randomUUID(),
              slug: 'x',
              source: { type: 'image', image: `${host}:${port}/team/app:1` },
              buildType: 'image',
              builderImage: null,
              customBuildpacks: [],
              variables: []
            },
            context
          )
          .then(
            () => undefined,
            (reason: Error) => reason
          )
        t.match(
          error,
          {
            code: 'E_SOURCE_HOST_PRIVATE',
            message: /the registry .* has the private or local address .*GIT_PRIVATE_HOSTS/
          },
          what
        )
        words.add(String(error?.message).replaceAll(/localhost|127\.0\.0\.1|::1/g, 'it'))
        t.equal(context.text(), `Pulling ${host}:${port}/team/app:1`)
      }
    }
    t.equal(words.size, 1, [...words].join('\n'))
    t.equal(connections, 0)
  }
)

test('which registries a program may let the engine ask', async t => {
  const port = await door(t, (_request, response) => {
    response.end('{}')
  })
  for (const image of [
    'node:20',
    'docker.io/team/app',
    'index.docker.io/team/app',
    `sha256:${'a'.repeat(64)}`,
    'a1b2c3d4e5f6',
    'listed.example/app',
    'listed.example:5000/app',
    `127.0.0.1:${port}/app`,
    '127.0.0.1:1/app'
  ]) {
    await t.resolves(admit(image), image)
  }
  await t.resolves(admit(`world.example:${port}/app`))
  await t.rejects(admit('ten.example/app'), {
    code: 'E_SOURCE_HOST_PRIVATE',
    message: /the registry ten\.example has the private or local address 10\.0\.0\.1/
  })
  await t.rejects(admit('10.1.2.3:5000/app'), { code: 'E_SOURCE_HOST_PRIVATE' })
  await t.rejects(admit('metadata.example/app'), { code: 'E_SOURCE_HOST_METADATA' })
  await t.rejects(admit('169.254.169.254/app'), { code: 'E_SOURCE_HOST_METADATA' })
  await t.rejects(
    admit('gone.invalid/app'),
    { code: 'E_REGISTRY_UNKNOWN' },
    'a code by which the image of that name on the engine is used'
  )
  await t.rejects(
    admit('world.example:1/app'),
    { code: 'E_REGISTRY_UNREACHABLE', message: /ECONNREFUSED.*GIT_PRIVATE_HOSTS/ },
    'of a public one the reason is told'
  )
  const plain = await listen(
    t,
    createServer((_request, response) => {
      response.end('{}')
    })
  )
  await t.rejects(admit(`world.example:${plain}/app`), {
    code: 'E_REGISTRY_UNREACHABLE',
    message: /asked over TLS/
  })
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  cancel.abort(reason)
  await t.rejects(gate.admit(`world.example:${port}/app`, cancel.signal), reason)
})

test('where everything is allowed, no registry is asked twice, and metadata stays out of reach', async t => {
  const open = new RegistryGate({
    hostPolicy: policyOf('allow'),
    lookup: async host => {
      if (host === 'gone.invalid') throw new Error('none')
      return [{ address: hosts[host] ?? '10.0.0.1', family: 4 }]
    }
  })
  for (const image of ['any.example:1/app', '127.0.0.1:5000/app', 'gone.invalid/app'])
    await t.resolves(open.admit(image, forever), image)
  await t.rejects(open.admit('metadata.example/app', forever), { code: 'E_SOURCE_HOST_METADATA' })
})

test('the token service and the redirects of a registry are under the same rules', async t => {
  const answers: Record<string, (port: number) => Record<string, string>> = {
    public: () => ({ 'www-authenticate': 'Bearer realm="https://world.example/token",service="x"' }),
    basic: () => ({ 'www-authenticate': 'Basic realm="lab"' }),
    private: () => ({ 'www-authenticate': 'Bearer realm="http://ten.example:8500/v1/kv",service="x"' }),
    second: () => ({
      'www-authenticate':
        'Bearer realm="https://world.example/token", Bearer service="x", Realm = http://10.0.0.7/'
    }),
    metadata: () => ({ 'www-authenticate': 'Bearer realm="http://169.254.169.254/latest/meta-data/"' }),
    moved: port => ({ location: `https://other.example:${port}/final` }),
    inward: () => ({ location: 'https://ten.example/v2/' }),
    plain: port => ({ location: `http://world.example:${port}/v2/` }),
    round: () => ({ location: '/v2/' })
  }
  const at = async (kind: string): Promise<string> => {
    const port: number = await door(t, (request, response) => {
      const headers = request.url === '/final' ? {} : answers[kind]?.(port)
      response.writeHead(headers?.location === undefined ? 401 : 307, headers).end()
    })
    return `world.example:${port}/app`
  }
  for (const kind of ['public', 'basic', 'moved']) await t.resolves(admit(await at(kind)), kind)
  for (const kind of ['private', 'second', 'inward'])
    await t.rejects(admit(await at(kind)), { code: 'E_SOURCE_HOST_PRIVATE' }, kind)
  await t.rejects(admit(await at('private')), { message: /the token service of a registry ten\.example has/ })
  await t.rejects(admit(await at('metadata')), { code: 'E_SOURCE_HOST_METADATA' })
  await t.rejects(admit(await at('plain')), {
    code: 'E_REGISTRY_ANSWER',
    message: /leaves the encrypted connection/
  })
  await t.rejects(admit(await at('round')), { code: 'E_REGISTRY_ANSWER', message: /more than 5 redirects/ })
  t.same(
    realmsIn('Basic realm="a b", Bearer realm="https://x/y"').map(({ href }) => href),
    ['https://x/y']
  )
})

engineTest(
  'the images that a Dockerfile names on a private host are refused before anybody connects, whatever listens there, and the engine gets ids alone',
  async t => {
    let connections = 0
    const port = await listen(
      t,
      createRawServer(socket => {
        socket.end('SSH-2.0-OpenSSH_9.2\r\n')
      }).on('connection', () => {
        connections++
      })
    )
    const loaded: string[] = []
    const handedOver: string[] = []
    const { build, builds } = startDockerfileLab(t, engine => ({
      load: async (archive, options) => {
        loaded.push(options.name)
        return await engine.load(archive, options)
      },
      build: async (context, options, progress) => {
        const [forTest, forEngine] = [new PassThrough(), new PassThrough()]
        context.pipe(forTest)
        context.pipe(forEngine)
        const [text, image] = await Promise.all([
          entryOf(forTest, options.dockerfile),
          engine.build(forEngine, options, progress)
        ])
        handedOver.push(text)
        return image
      }
    }))
    const words = new Set<string>()
    for (const host of ['127.0.0.1', 'registry.example']) {
      for (const at of [1, port]) {
        const image = `${host}:${at}/team/app`
        for (const text of [
          `FROM ${image}`,
          `ARG HOST=${host}:${at}\nFROM $HOST/team/app:1`,
          `FROM busybox:lab\nCOPY --from=${image} /x /x`,
          `FROM busybox:lab\nONBUILD COPY --from=${image}@sha256:${'a'.repeat(64)} /x /x`,
          `FROM --platform=linux/amd64 ${image}:2`
        ]) {
          const { error, log } = await build({ Dockerfile: `${text}\n` })
          t.match(
            error,
            {
              code: 'E_SOURCE_HOST_PRIVATE',
              message: /the registry .* has the private or local address 127\.0\.0\.1/
            },
            text
          )
          t.notMatch(log, /SSH|refused|timeout/)
          words.add((error?.message ?? '').replace(host, 'it'))
        }
      }
    }
    t.equal(words.size, 1, [...words].join('\n'))
    t.equal(connections, 0)
    t.same(loaded, [], 'the engine is handed nothing')
    t.equal(builds(), 0)

    const { error } = await build({
      Dockerfile:
        'FROM busybox:lab AS a\nFROM node:20\nCOPY --from=a /etc/passwd /x\nCOPY --from=busybox:lab /etc/passwd /y\n'
    })
    t.equal(error?.message, undefined)
    t.same(
      handedOver
        .join('')
        .split('\n')
        .filter(line => /^FROM|--from/.test(line))
        .map(line => line.replace(/sha256:[0-9a-f]{64}/, 'ID')),
      ['FROM ID AS a', 'FROM ID', 'COPY --from=0 /etc/passwd /x', 'COPY --from=ID /etc/passwd /y']
    )
  }
)

/** The text of one file of a tar. */
async function entryOf(tar: Readable, wanted: string): Promise<string> {
  let text = ''
  for await (const entry of tar.pipe(extract())) {
    const pieces: Buffer[] = []
    for await (const piece of entry) pieces.push(piece as Buffer)
    if (entry.header.name === wanted) text = Buffer.concat(pieces).toString()
  }
  return text
}

engineTest('the builders of the platform that take a Dockerfile pull through the gate', async t => {
  let connections = 0
  const port = await listen(
    t,
    createRawServer(socket => {
      socket.end()
    }).on('connection', () => {
      connections++
    })
  )
  const image = `127.0.0.1:${port}/team/app:1`
  let contributed: Contributions<Builder> | undefined
  const probe = definePlugin({
    id: 'probe',
    needs: { builders },
    async start({ use }) {
      contributed = use.builders
      return {}
    }
  })
  const k = await createTestKernel({
    environment: { GIT_PRIVATE_HOSTS: 'deny' },
    inline: [{ manifest: { id: 'probe' }, definition: probe }]
  })
  t.teardown(async () => await k.close())
  t.equal(
    (await (await k.as.session('admin')).put('/api/plugins/builds/config', { static_image: image })).status,
    200
  )
  for (const [buildType, files] of [
    ['dockerfile', { Dockerfile: `FROM ${image}\n` }],
    ['static', { 'index.html': 'x' }]
  ] as const) {
    const id = randomUUID()
    const error = await contributed
      ?.get(buildType)
      ?.build(
        {
          applicationId: id,
          deploymentId: randomUUID(),
          projectId: randomUUID(),
          directory: await tree(t, files),
          dockerfilePath: '',
          tag: `busbar-gate-${id}:1`,
          variables: [],
          builderImage: null,
          customBuildpacks: [],
          scratch: await folder(t),
          noCache: false
        },
        recorder()
      )
      .then(
        () => undefined,
        (reason: Error) => reason
      )
    t.match(error, { code: 'E_SOURCE_HOST_PRIVATE' }, buildType)
  }
  t.equal(connections, 0)
})
