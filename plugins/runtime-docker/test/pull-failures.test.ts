import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createRawServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { pack } from 'tar-stream'
import { requireDockerRegistry, startDockerRegistry } from '../../../test/lab/docker-registry.js'
import { engineTest, type Lab, startLab } from './lab.js'

const account = { username: 'deployer', password: 's3cret/+ä"word' }
const forever = new AbortController().signal
const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'
const listType = 'application/vnd.docker.distribution.manifest.list.v2+json'
const isRegistry = { 'docker-distribution-api-version': 'registry/2.0' }

type Auth = { readonly username: string; readonly password: string } | undefined
const pull = async ({ runtime }: Lab, image: string, auth?: Auth, signal = forever) =>
  await runtime.pull(image, { auth, onLine: () => {}, signal })

/** A layer with one file. */
async function layer(name: string, bytes: Buffer): Promise<Buffer> {
  const tar = pack()
  tar.entry({ name, mode: 0o755 }, bytes)
  tar.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of tar) chunks.push(Buffer.from(chunk as Buffer))
  return Buffer.concat(chunks)
}

/** An HTTP server that answers in its own way. */
async function serve(t: Test, answer: RequestListener, host = '127.0.0.1'): Promise<string> {
  return await listen(t, createServer(answer), host)
}

async function listen(t: Test, server: Server, host: string): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `${host}:${(server.address() as AddressInfo).port}`
}

/** A registry that is one as far as `GET /v2/`, and then answers in its own way. */
const afterTheDoor =
  (answer: RequestListener): RequestListener =>
  (request, response) => {
    if (request.url !== '/v2/') return answer(request, response)
    response.writeHead(200, isRegistry)
    response.end('{}')
  }

const says =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { ...isRegistry, ...headers })
    response.end(body)
  }

const code = (name: string) => JSON.stringify({ errors: [{ code: name, message: name }] })

/** An address of this machine that the engine does not trust as it trusts loopback. */
const ownAddress = (): string | undefined =>
  Object.values(networkInterfaces())
    .flat()
    .find(one => one?.family === 'IPv4' && !one.internal)?.address

engineTest('the real registry tells who may read what', async t => {
  if (!(await requireDockerRegistry(t))) return
  const lab = startLab(t)
  const registry = await startDockerRegistry(t, { account })
  const bytes = await layer('hello', Buffer.from('hello'))
  const digest = await registry.push('team/app', '1', {
    architecture: 'amd64',
    layer: bytes,
    command: ['/hello']
  })
  const name = `${registry.host}/team/app:1`
  t.teardown(
    async () =>
      await lab.docker
        .getImage(name)
        .remove({ force: true })
        .catch(() => undefined)
  )

  await t.rejects(pull(lab, name), {
    status: 409,
    code: 'E_REGISTRY_DENIED',
    message: /does not hand out .*team\/app:1 to everybody.*registry_username and registry_password/
  })
  await t.rejects(pull(lab, name, { ...account, password: 'wrong' }), {
    code: 'E_REGISTRY_CREDENTIALS',
    message: /refused the user name deployer and its password/
  })
  await t.rejects(pull(lab, name, { ...account, username: 'other' }), {
    code: 'E_REGISTRY_CREDENTIALS',
    message: /user name other/
  })
  await t.rejects(pull(lab, `${registry.host}/team/app:none`, account), {
    status: 404,
    code: 'E_IMAGE_NOT_FOUND',
    message: /it has no tag none of .*team\/app, or no such repository/
  })
  await t.rejects(pull(lab, `${registry.host}/team/none:1`, account), {
    status: 404,
    code: 'E_IMAGE_NOT_FOUND',
    message: /no tag 1 of .*team\/none, or no such repository; check name and tag/
  })
  const gone = `sha256:${'0'.repeat(64)}`
  await t.rejects(pull(lab, `${registry.host}/team/app@${gone}`, account), {
    code: 'E_IMAGE_NOT_FOUND',
    message: new RegExp(`no version ${gone}`)
  })

  t.match((await pull(lab, name, account)).repoDigests, [`${registry.host}/team/app@${digest}`])
  t.match((await pull(lab, `${registry.host}/team/app@${digest}`, account)).repoDigests, [
    `${registry.host}/team/app@${digest}`
  ])
  await t.rejects(
    pull(lab, name),
    { code: 'E_REGISTRY_DENIED' },
    'what one account has pulled is not handed out to another by the engine'
  )
  await t.rejects(
    pull(lab, `${registry.host}/team/app@${digest}`),
    { code: 'E_REGISTRY_DENIED' },
    'neither by its digest'
  )
  await t.rejects(pull(lab, `${registry.host}/team/app@${digest}`, { ...account, password: 'wrong' }), {
    code: 'E_REGISTRY_CREDENTIALS'
  })
  t.ok(await pull(lab, `${registry.host}/team/app@${digest}`, account))
})

engineTest('an image for another kind of machine is pulled and known as such', async t => {
  if (!(await requireDockerRegistry(t))) return
  const lab = startLab(t)
  const registry = await startDockerRegistry(t)
  const own = (await lab.docker.version()).Arch
  const other = own === 'arm64' ? 'amd64' : 'arm64'
  const bytes = await layer('app', Buffer.from('not for here'))
  for (const architecture of [own, other])
    await registry.push('team/app', architecture, { architecture, layer: bytes, command: ['/app'] })
  const name = (tag: string) => `${registry.host}/team/app:${tag}`
  t.teardown(async () => {
    for (const tag of [own, other])
      await lab.docker
        .getImage(name(tag))
        .remove({ force: true })
        .catch(() => undefined)
  })
  t.equal((await pull(lab, name(own))).foreignPlatform, undefined)
  t.equal((await pull(lab, name(other))).foreignPlatform, `linux/${other}`)
  t.equal((await lab.runtime.image(name(other)))?.foreignPlatform, `linux/${other}`)
})

engineTest(
  'what answers badly is told apart: no registry, a failing one, a broken image, another machine',
  async t => {
    const lab = startLab(t)
    const list = JSON.stringify({
      schemaVersion: 2,
      mediaType: listType,
      manifests: [
        {
          mediaType: manifestType,
          size: 7,
          digest: `sha256:${'1'.repeat(64)}`,
          platform: { architecture: 's390x', os: 'linux' }
        }
      ]
    })
    const html = { 'content-type': 'text/html' }
    const cases: ReadonlyArray<
      readonly [what: string, answer: RequestListener, expected: { code: string; message: RegExp }]
    > = [
      [
        'a web page',
        says(200, '<html>Welcome</html>', html),
        { code: 'E_REGISTRY_ANSWER', message: /no image registry.*check the host and port in 127/ }
      ],
      [
        'a web page that says not found',
        says(404, '<html>no</html>', html),
        { code: 'E_REGISTRY_ANSWER', message: /no image registry/ }
      ],
      [
        'a web page behind a real door',
        afterTheDoor(says(200, '<html></html>', html)),
        { code: 'E_REGISTRY_ANSWER', message: /no image registry/ }
      ],
      [
        'a page that sends everybody to itself',
        says(302, '', { location: '/login' }),
        { code: 'E_REGISTRY_ANSWER', message: /redirects/ }
      ],
      [
        'half a manifest',
        afterTheDoor(says(200, '{"schemaVersion":2,', { 'content-type': manifestType })),
        { code: 'E_IMAGE_BROKEN', message: /push the image again/ }
      ],
      [
        'an empty manifest',
        afterTheDoor(says(200, '{"schemaVersion":2}', { 'content-type': manifestType })),
        { code: 'E_IMAGE_BROKEN', message: /incomplete or damaged/ }
      ],
      [
        'a list without this machine',
        afterTheDoor(says(200, list, { 'content-type': listType })),
        { code: 'E_IMAGE_PLATFORM', message: /no matching manifest for linux.*push it for that one too/ }
      ],
      [
        'an unknown repository',
        afterTheDoor(says(404, code('NAME_UNKNOWN'))),
        { code: 'E_IMAGE_NOT_FOUND', message: /there is no repository 127.*\/team\/app/ }
      ],
      [
        'an error of its own',
        says(500, 'boom'),
        { code: 'E_REGISTRY_FAILING', message: /500 Internal Server Error; try again later/ }
      ],
      [
        'an error of what stands before it',
        says(503, 'busy'),
        { code: 'E_REGISTRY_FAILING', message: /503/ }
      ],
      [
        'a limit',
        says(429, code('TOOMANYREQUESTS')),
        { code: 'E_REGISTRY_LIMIT', message: /limits how often/ }
      ],
      [
        'a refusal of everybody',
        afterTheDoor(says(403, code('DENIED'))),
        { code: 'E_REGISTRY_DENIED', message: /set registry_username/ }
      ],
      [
        'a hung-up connection',
        request => {
          request.socket.destroy()
        },
        { code: 'E_REGISTRY_UNREACHABLE', message: /EOF/ }
      ],
      [
        'a token service that is away',
        says(401, '{}', { 'www-authenticate': 'Bearer realm="http://127.0.0.1:1/token",service="x"' }),
        { code: 'E_REGISTRY_UNREACHABLE', message: /127\.0\.0\.1:1.*connection refused/ }
      ]
    ]
    for (const [what, answer, expected] of cases) {
      const host = await serve(t, answer)
      await t.rejects(pull(lab, `${host}/team/app:1`), expected, what)
    }
    const forbidden = await serve(t, afterTheDoor(says(403, code('DENIED'))))
    await t.rejects(
      pull(lab, `${forbidden}/team/app:1`, account),
      { code: 'E_REGISTRY_DENIED', message: /to the account deployer: allow it to pull/ },
      'an account without the right'
    )
  }
)

engineTest('a damaged or a missing layer is an image to push again', async t => {
  if (!(await requireDockerRegistry(t))) return
  const lab = startLab(t)
  const registry = await startDockerRegistry(t)
  await registry.push('team/app', '1', {
    architecture: (await lab.docker.version()).Arch,
    layer: await layer('x', Buffer.alloc(100_000, 'x')),
    command: ['/x']
  })
  const between = async (spoil: (body: Buffer) => { status: number; body: Buffer }) =>
    await serve(t, (request, response) => {
      void (async () => {
        const answer = await fetch(`http://${registry.host}${request.url ?? ''}`, {
          method: request.method,
          headers: { accept: request.headers.accept ?? '' }
        })
        const whole = Buffer.from(await answer.arrayBuffer())
        const { status, body } = whole.length > 50_000 ? spoil(whole) : { status: answer.status, body: whole }
        const { 'content-length': length, ...headers } = Object.fromEntries(answer.headers)
        response.writeHead(status, {
          ...headers,
          'content-length': request.method === 'HEAD' ? length : body.length
        })
        response.end(body)
      })()
    })
  const changed = await between(body => ({
    status: 200,
    body: Buffer.concat([body.subarray(0, -1), Buffer.from('!')])
  }))
  await t.rejects(pull(lab, `${changed}/team/app:1`), {
    code: 'E_IMAGE_BROKEN',
    message: /verification failed.*push the image again/
  })
  const lost = await between(() => ({ status: 404, body: Buffer.from(code('BLOB_UNKNOWN')) }))
  await t.rejects(pull(lab, `${lost}/team/app:1`), { code: 'E_IMAGE_BROKEN', message: /unknown blob/ })
})

engineTest(
  'plain HTTP and an unknown certificate are refused beyond loopback, each with its own remedy',
  async t => {
    const lab = startLab(t)
    const address = ownAddress()
    if (address === undefined) throw new Error('this machine has no address but loopback')
    const plain = await serve(t, says(200, '{}'), address)
    await t.rejects(pull(lab, `${plain}/team/app:1`), {
      code: 'E_REGISTRY_PLAIN_HTTP',
      message: new RegExp(`give the registry a certificate, or list ${plain} under insecure-registries`)
    })
    const secure = await listen(
      t,
      createTlsServer(await selfSigned(address), says(200, '{}')) as unknown as Server,
      address
    )
    await t.rejects(pull(lab, `${secure}/team/app:1`), {
      code: 'E_REGISTRY_TLS',
      message: new RegExp(`x509.*/etc/docker/certs\\.d/${secure}/ca\\.crt`)
    })
    await t.rejects(pull(lab, `${address}:1/team/app:1`), {
      code: 'E_REGISTRY_UNREACHABLE',
      message: /connection refused/
    })
  }
)

async function selfSigned(address: string): Promise<{ key: string; cert: string }> {
  const { stdout } = await promisify(execFile)('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    '-',
    '-out',
    '-',
    '-days',
    '2',
    '-subj',
    '/CN=lab',
    '-addext',
    `subjectAltName=IP:${address}`
  ])
  const part = (name: string): string =>
    new RegExp(`-----BEGIN ${name}-----[^]*?-----END ${name}-----`).exec(stdout)?.[0] ?? ''
  return { key: part('PRIVATE KEY'), cert: part('CERTIFICATE') }
}

engineTest('a registry that takes connections and never answers is given up by the engine', async t => {
  const lab = startLab(t)
  const sockets = new Set<Socket>()
  const mute = createRawServer(socket => {
    sockets.add(socket)
  })
  await new Promise<void>(resolve => mute.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    mute.close()
  })
  await t.rejects(pull(lab, `127.0.0.1:${(mute.address() as AddressInfo).port}/app:1`), {
    code: 'E_REGISTRY_UNREACHABLE',
    message: /did not answer in time.*whether a firewall is in between/
  })
})

/** A registry that has an image of three layers, and sends next to nothing of each. */
async function startDrip(
  t: Test,
  { layerBytes, drop, everyMs }: { layerBytes: number; drop: string; everyMs: number }
): Promise<{ image: string; open: () => number }> {
  const open = new Set<ServerResponse>()
  const drip: RequestListener = (_request, response) => {
    open.add(response)
    response.writeHead(200, { ...isRegistry, 'content-length': String(layerBytes) })
    response.write(drop)
    const timer = setInterval(() => response.write(drop), everyMs)
    response.once('close', () => {
      clearInterval(timer)
      open.delete(response)
    })
  }
  const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  const random = () => digestOf(randomBytes(32))
  const layers = [random(), random(), random()]
  const config = Buffer.from(
    JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: layers.map(random) }
    })
  )
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: {
      mediaType: 'application/vnd.docker.container.image.v1+json',
      size: config.length,
      digest: digestOf(config)
    },
    layers: layers.map(digest => ({
      mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
      size: layerBytes,
      digest
    }))
  })
  const host = await serve(
    t,
    afterTheDoor((request, response) => {
      if (request.url?.includes('/manifests/') === true)
        says(200, manifest, { 'content-type': manifestType })(request, response)
      else if (request.url?.endsWith(digestOf(config)) === true) response.end(config)
      else drip(request, response)
    })
  )
  return { image: `${host}/team/app:1`, open: () => open.size }
}

engineTest('cancelling a pull ends the transfer of its layers, however slow they are', async t => {
  const lab = startLab(t)
  const { image, open } = await startDrip(t, { layerBytes: 1_000_000, drop: 'x', everyMs: 1000 })
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  const failure = t.rejects(pull(lab, image, undefined, cancel.signal), reason)
  await until(() => open() === 3, 'the layers to be on their way')
  cancel.abort(reason)
  await failure
  await until(() => open() === 0, 'the engine to hang up')
  t.equal(await lab.runtime.image(image), undefined)
})

engineTest('a pull that has an owner tells what has come of it', async t => {
  const lab = startLab(t)
  const { image } = await startDrip(t, { layerBytes: 10_000, drop: 'x'.repeat(20), everyMs: 100 })
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  const owner = { projectId: lab.projectId }
  const pulling = lab.runtime.pull(image, { owner, onLine: () => {}, signal: cancel.signal })
  const failure = t.rejects(pulling, reason)
  const usage = await until(async () => {
    const [first] = await lab.runtime.buildUsage()
    return first !== undefined && first.bytes > 0 ? first : undefined
  }, 'something to come')
  t.match(usage, { owner, isPartial: false })
  t.ok(usage.bytes < 30_000)
  cancel.abort(reason)
  await failure
  t.same(await lab.runtime.buildUsage(), [])
})

engineTest('a pull of which next to nothing comes ends, in the engine too, and says so', async t => {
  const lab = startLab(t, { pullPace: { seconds: 3, bytesPerSecond: 1000 } })
  // The engine tells of each hundredth of a layer.
  const { image, open } = await startDrip(t, { layerBytes: 10_000, drop: 'x'.repeat(20), everyMs: 100 })
  await t.rejects(pull(lab, image), {
    status: 502,
    code: 'E_REGISTRY_SLOW',
    message:
      /sends too slowly to pull .*: less than 1000 bytes a second for 3 seconds; see whether it is well/
  })
  await until(() => open() === 0, 'the engine to hang up')

  const silent = await serve(
    t,
    afterTheDoor(() => undefined)
  )
  await t.rejects(pull(lab, `${silent}/team/app:1`), {
    code: 'E_REGISTRY_UNREACHABLE',
    message: /did not answer in time to pull .*: for 3 seconds next to nothing came/
  })
})
