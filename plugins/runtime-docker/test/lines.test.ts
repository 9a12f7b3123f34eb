import { registryOf } from 'busbar/api/images'
import { cutMark } from 'busbar/sdk'
import { test } from 'tap'
import { buildProblem } from '../build-failure.js'
import { tcpPorts } from '../image-info.js'
import { parseImageReference } from '../image-reference.js'
import { containerLines, OutputLines } from '../output-lines.js'
import { pullProblem } from '../pull-failure.js'
import { PullProgress } from '../pull-progress.js'

const linesOf = (...pieces: readonly string[]) => {
  const lines: string[] = []
  const output = new OutputLines(line => lines.push(line))
  for (const piece of pieces) output.write(piece)
  output.end()
  return lines
}

test('pieces of output become lines, wherever they were cut', t => {
  t.same(linesOf('a', 'b\nc', '\n\nd'), ['ab', 'c', '', 'd'])
  t.same(linesOf('dos\r\nline\r', '\nend'), ['dos', 'line', 'end'])
  t.same(linesOf('10%\r', '20%\r', '30%\n'), ['30%'])
  t.same(linesOf('a\rb\rc\nd'), ['c', 'd'])
  t.same(linesOf('\u0000\u0007x\ty\u001b[31mred\n'), ['x\ty\u001b[31mred'])
  t.same(linesOf(), [])
  t.end()
})

test('a line longer than 16 KiB is cut and says so, and the next one is whole', t => {
  const [long, next] = linesOf('x'.repeat(10_000), 'x'.repeat(10_000), '\nnext\n')
  t.equal(long, `${'x'.repeat(16_384)} … (cut)`)
  t.equal(next, 'next')
  t.end()
})

test('a pull of many events becomes a handful of lines', t => {
  const lines: string[] = []
  const progress = new PullProgress(line => lines.push(line))
  progress.write({ id: '20', status: 'Pulling from library/node' })
  for (const id of ['aaa', 'bbb']) progress.write({ id, status: 'Pulling fs layer', progressDetail: {} })
  for (let mebibytes = 1; mebibytes <= 100; mebibytes++) {
    progress.write({
      id: 'aaa',
      status: 'Downloading',
      progressDetail: { current: mebibytes * 2 ** 20, total: 100 * 2 ** 20 }
    })
  }
  for (let step = 1; step <= 500; step++)
    progress.write({ id: 'aaa', status: 'Extracting', progressDetail: { current: step } })
  progress.write({ id: 'aaa', status: 'Pull complete' })
  progress.write({ id: 'bbb', status: 'Already exists' })
  progress.write({ status: 'Digest: sha256:1' })
  t.same(lines, [
    'Pulling from library/node',
    '0 of 2 layers ready, 34 MB downloaded',
    '0 of 2 layers ready, 67 MB downloaded',
    '0 of 2 layers ready, 101 MB downloaded',
    '1 of 2 layers ready, 105 MB downloaded',
    '2 of 2 layers ready, 105 MB downloaded',
    'Digest: sha256:1'
  ])
  t.end()
})

test('image names are read as the engine reads them', t => {
  const digest = `sha256:${'a'.repeat(64)}`
  t.same(parseImageReference('node'), { registry: 'docker.io', name: 'node', version: 'latest' })
  t.same(parseImageReference('team/app:1.2'), { registry: 'docker.io', name: 'team/app', version: '1.2' })
  t.same(parseImageReference('localhost:5000/app'), {
    registry: 'localhost:5000',
    name: 'localhost:5000/app',
    version: 'latest'
  })
  t.same(parseImageReference('ghcr.io/team/my_app.x:v1'), {
    registry: 'ghcr.io',
    name: 'ghcr.io/team/my_app.x',
    version: 'v1'
  })
  t.same(parseImageReference(`node:20@${digest}`), { registry: 'docker.io', name: 'node', version: digest })
  for (const wrong of [
    '',
    'Node',
    'a b',
    'node:',
    'node:-x',
    '-x',
    'node@sha256:1',
    'https://x/y',
    'a//b',
    '../x',
    'x\n'
  ]) {
    t.throws(() => parseImageReference(wrong), { code: 'E_IMAGE_REFERENCE' }, JSON.stringify(wrong))
  }
  t.end()
})

test('the words of registries are told apart', t => {
  const reference = parseImageReference('ghcr.io/team/app:1')
  const cases: ReadonlyArray<readonly [words: string, code: string]> = [
    ['manifest for ghcr.io/team/app:1 not found: manifest unknown: manifest unknown', 'E_IMAGE_NOT_FOUND'],
    [
      "pull access denied for team/app, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
      'E_REGISTRY_DENIED'
    ],
    ['Head "https://ghcr.io/v2/team/app/manifests/1": denied: denied', 'E_REGISTRY_DENIED'],
    ['unauthorized: authentication required', 'E_REGISTRY_DENIED'],
    ['Head "http://127.0.0.1:5001/v2/team/app/manifests/1": no basic auth credentials', 'E_REGISTRY_DENIED'],
    ['denied', 'E_REGISTRY_DENIED'],
    ['name unknown', 'E_IMAGE_NOT_FOUND'],
    [
      'Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io on 10.0.0.2:53: no such host',
      'E_REGISTRY_UNKNOWN'
    ],
    [
      'Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io: Temporary failure in name resolution',
      'E_REGISTRY_UNKNOWN'
    ],
    [
      'Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io on [::1]:53: read udp [::1]:50432->[::1]:53: read: connection refused',
      'E_REGISTRY_UNKNOWN'
    ],
    ['Get "https://ghcr.io/v2/": dial tcp 140.82.121.34:443: i/o timeout', 'E_REGISTRY_UNREACHABLE'],
    [
      'Get "https://ghcr.io/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)',
      'E_REGISTRY_UNREACHABLE'
    ],
    ['Get "https://ghcr.io/v2/": EOF', 'E_REGISTRY_UNREACHABLE'],
    ['Get "https://ghcr.io/v2/": x509: certificate signed by unknown authority', 'E_REGISTRY_TLS'],
    [
      'Get "https://ghcr.io/v2/": x509: certificate has expired or is not yet valid: current time 2026-11-21T20:50:55Z is after 2020-01-01T00:00:00Z',
      'E_REGISTRY_TLS'
    ],
    ['Get "https://ghcr.io/v2/": remote error: tls: handshake failure', 'E_REGISTRY_TLS'],
    ['Get "https://ghcr.io/v2/": net/http: TLS handshake timeout', 'E_REGISTRY_UNREACHABLE'],
    ['Get "https://ghcr.io/v2/": http: server gave HTTP response to HTTPS client', 'E_REGISTRY_PLAIN_HTTP'],
    [
      "error unmarshalling content: invalid character '<' looking for beginning of value",
      'E_REGISTRY_ANSWER'
    ],
    [
      'error parsing HTTP 403 response body: invalid character \'<\' looking for beginning of value: "<html>Forbidden</html>"',
      'E_REGISTRY_ANSWER'
    ],
    ['Get "/login": stopped after 10 redirects', 'E_REGISTRY_ANSWER'],
    ['received unexpected HTTP status: 503 Service Unavailable', 'E_REGISTRY_FAILING'],
    ['missing or empty Content-Length header', 'E_IMAGE_BROKEN'],
    [
      "mediaType in manifest should be 'application/vnd.docker.distribution.manifest.v2+json' not ''",
      'E_IMAGE_BROKEN'
    ],
    ['error pulling image configuration: download failed after attempts=1: unknown blob', 'E_IMAGE_BROKEN'],
    [`filesystem layer verification failed for digest sha256:${'4'.repeat(64)}`, 'E_IMAGE_BROKEN'],
    ['unsupported schema version 1', 'E_IMAGE_FORMAT'],
    ['toomanyrequests: You have reached your pull rate limit.', 'E_REGISTRY_LIMIT'],
    ['no matching manifest for linux/arm64/v8 in the manifest list entries', 'E_IMAGE_PLATFORM'],
    ['failed to register layer: write /x: no space left on device', 'E_ENGINE_DISK_FULL'],
    ['something new', 'E_IMAGE_PULL']
  ]
  for (const [words, code] of cases)
    t.equal(pullProblem({ reference, image: 'ghcr.io/team/app:1' }, words).code, code, words)
  t.end()
})

test('a base image that is refused is told together with what builds do not have', t => {
  const image = 'ghcr.io/team/app:1'
  for (const words of ['unauthorized', 'denied: requested access to the resource is denied'])
    t.match(pullProblem({ reference: parseImageReference(image), image }, words), {
      code: 'E_REGISTRY_DENIED',
      message: /base image ghcr\.io\/team\/app:1 .* which builds do not have/
    })
  t.end()
})

test('the name of an image is not taken for the reason why its pull failed', t => {
  const image = 'unauthorized.example.com/denied/not-found:404'
  const failed = { reference: parseImageReference(image), image }
  t.equal(
    pullProblem(failed, `Get "https://unauthorized.example.com/v2/denied/not-found/manifests/404": EOF`).code,
    'E_REGISTRY_UNREACHABLE'
  )
  t.equal(
    pullProblem(failed, `manifest for ${image} not found: manifest unknown: manifest unknown`).code,
    'E_IMAGE_NOT_FOUND'
  )
  t.equal(
    pullProblem(failed, 'received unexpected HTTP status: 500 Internal Server Error').code,
    'E_REGISTRY_FAILING'
  )
  t.end()
})

test('credentials belong to the host that the engine would send them to', t => {
  for (const [image, host] of [
    ['node', 'docker.io'],
    ['team/app:1', 'docker.io'],
    ['docker.io/team/app', 'docker.io'],
    ['index.docker.io/team/app', 'docker.io'],
    ['ghcr.io/a/b', 'ghcr.io'],
    ['GHCR.io/a/b', 'ghcr.io'],
    ['localhost/a', 'localhost'],
    ['localhost:5000/a:1', 'localhost:5000'],
    ['Evil/a', 'evil']
  ] as const)
    t.equal(registryOf(image), host, image)
  t.end()
})

test('the words of builds are told apart, and commands are shown as they were written', t => {
  const build = { dockerfile: 'Dockerfile', memoryBytes: 2 ** 30, baseImage: 'node:20' }
  const killed = buildProblem("The command '/bin/sh -c npm ci' returned a non-zero code: 137", build)
  t.match(killed, { code: 'E_BUILD_KILLED', message: /npm ci was killed .* 1024 MiB/ })
  t.match(
    buildProblem("The command '/bin/sh -c npm test' returned a non-zero code: 1", build).message,
    /^the build stopped: npm test ended with exit code 1;/
  )
  t.match(buildProblem('pull access denied for node, repository does not exist', build), {
    code: 'E_REGISTRY_DENIED',
    message: /node:20/
  })
  t.equal(buildProblem('write /x: no space left on device', build).code, 'E_ENGINE_DISK_FULL')
  t.equal(buildProblem('whatever', build).code, 'E_BUILD_FAILED')
  t.match(
    buildProblem(
      `The command '/bin/sh -c ${'base name '.repeat(20_000)}' returned a non-zero code: 3`,
      build
    ),
    { code: 'E_BUILD_COMMAND', message: /exit code 3/ },
    'however long the command'
  )
  t.ok(buildProblem('base name '.repeat(20_000), build).message.length < 5000)
  t.end()
})

test('of EXPOSE the TCP ports are read, lowest first', t => {
  t.same(tcpPorts(['9000/tcp', '53/udp', '80', '443/tcp']), [80, 443, 9000])
  t.end()
})

test('what may begin in the middle of a line says so', t => {
  const rest = 'x'.repeat(16_000)
  t.same(containerLines(Buffer.from(`${rest}\n`), true), [rest])
  t.same(containerLines(Buffer.from(`${rest}\n${rest}\n`), true), [cutMark + rest, rest])
  t.end()
})

/** As the engine hands out a piece of a stream. */
function frame(stream: number, body: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head[0] = stream
  head.writeUInt32BE(body.length, 4)
  return Buffer.concat([head, body])
}

test('a character that lies across two pieces of a stream is one, with the other stream between', t => {
  const secret = Buffer.from('schlüssel-€-\u{1f511}')
  for (let cut = 1; cut < secret.length; cut++)
    t.same(
      containerLines(
        Buffer.concat([
          frame(1, secret.subarray(0, cut)),
          frame(2, Buffer.from('ö\n')),
          frame(1, secret.subarray(cut))
        ]),
        false,
        10
      ),
      ['ö', secret.toString()]
    )
  t.same(containerLines(frame(1, secret.subarray(0, -1)), false, 10), ['schlüssel-€-\ufffd'])
  t.end()
})

test('where the engine has lost a character between two pieces of a line, it is marked as cut', t => {
  const [before, behind] = ['ü'.repeat(8190), 'of a secret']
  t.same(
    containerLines(
      Buffer.concat([
        frame(1, Buffer.from(`${before}\ufffd\ufffd`)),
        frame(1, Buffer.from(`\ufffd${behind}\n`))
      ]),
      false,
      10
    ),
    [`${before}${cutMark}\ufffd${behind}`]
  )
  t.same(containerLines(frame(1, Buffer.from('its own \ufffd')), false, 10), ['its own \ufffd'])
  t.end()
})
