import { test } from 'tap'
import { readImageConfig } from '../registry/client/image-config.js'
import { locateImage } from '../registry/client/image-location.js'
import { type IndexEntry, readManifest } from '../registry/client/manifest.js'
import { pickEntry } from '../registry/client/platform-choice.js'
import { indexType, manifestText, manifestType } from './hand-made-registry.js'

const dockerLayer = 'application/vnd.docker.image.rootfs'
const digest = `sha256:${'1'.repeat(64)}`
const descriptor = { digest, size: 10 }
const oci = 'application/vnd.oci.image.manifest.v1+json'
const read = (value: unknown, type: string | undefined = manifestType) =>
  readManifest(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), type)
const failure = (work: () => unknown): string => {
  try {
    work()
    return 'none'
  } catch (error) {
    return `${(error as { kind?: string }).kind}: ${(error as Error).message}`
  }
}
const layersOf = (layers: ReadonlyArray<object>) => ({
  schemaVersion: 2,
  config: { ...descriptor, mediaType: 'application/vnd.oci.image.config.v1+json' },
  layers
})

test('manifests of Docker and of OCI are read, named by themselves or by their answer', t => {
  const layers = [
    'docker.image.rootfs.diff.tar.gzip',
    'docker.image.rootfs.diff.tar',
    'oci.image.layer.v1.tar',
    'oci.image.layer.v1.tar+gzip',
    'oci.image.layer.v1.tar+zstd'
  ].map(type => ({ ...descriptor, mediaType: `application/vnd.${type}` }))
  t.match(read(manifestText(descriptor, layers)), { kind: 'image', config: descriptor, layers })
  t.match(read(layersOf(layers), oci), { kind: 'image', layers })
  t.match(read({ ...layersOf(layers), mediaType: oci }, 'text/plain; charset=utf-8'), { kind: 'image' })
  t.match(read(layersOf([]), undefined), { kind: 'image', layers: [] }, 'nothing upon scratch')
  const index = {
    schemaVersion: 2,
    manifests: [
      { ...descriptor, platform: { os: 'linux', architecture: 'arm', variant: 'v7' } },
      { ...descriptor, platform: { os: 'linux', architecture: 'amd64', 'os.version': '1' } },
      { ...descriptor, platform: { os: 'linux', architecture: '<b>' } },
      descriptor
    ]
  }
  t.match(read(index, `${indexType}; charset=utf-8`), {
    kind: 'index',
    entries: [
      { platform: 'linux/arm/v7' },
      { platform: 'linux/amd64' },
      { platform: 'linux/unknown' },
      { platform: undefined }
    ]
  })
  t.match(read(index, 'application/json'), { kind: 'index' })
  t.end()
})

test('what is no manifest of an image is refused, each for its own reason', t => {
  const image = layersOf([descriptor])
  const index = { schemaVersion: 2, manifests: [descriptor] }
  const html = 'text/html; charset=utf-8'
  const cases: ReadonlyArray<readonly [what: string, work: () => unknown, expected: RegExp]> = [
    ['a web page', () => read('<html>', html), /^answer: .*text\/html/],
    ['any JSON', () => read({ hello: 'world' }, 'text/plain'), /^answer: /],
    ['half a manifest', () => read('{"schemaVersion":2,'), /^broken: .*cut off/],
    ['an empty manifest', () => read('{"schemaVersion":2}'), /^broken: .*no layers/],
    ['a list', () => read('[]'), /^broken: /],
    ['schema 1', () => read({ schemaVersion: 1 }, 'application/json'), /^format: .*outdated/],
    [
      'schema 1, signed',
      () => read('{}', 'application/vnd.docker.distribution.manifest.v1+prettyjws'),
      /^format: .*outdated/
    ],
    ['another type', () => read({ ...image, mediaType: 'application/x' }), /^format: .*application\/x/],
    ['a type that is none', () => read({ ...image, mediaType: 5 }), /^format: /],
    ['two types', () => read({ ...image, mediaType: oci }, indexType), /^broken: .*and the registry/],
    ['both', () => read({ ...image, ...index }), /^broken: .*image and an index/],
    ['an index that says it is an image', () => read({ ...index, mediaType: oci }), /^broken: .*no layers/],
    ['an image that says it is an index', () => read(image, indexType), /^broken: .*no manifests/],
    ['a chart', () => read({ ...image, config: { ...descriptor, mediaType: 'chart' } }), /^format: .*chart/],
    ['no configuration', () => read({ ...image, config: null }), /^broken: a configuration has no digest/],
    [
      'a foreign layer of Docker',
      () => read(layersOf([{ ...descriptor, mediaType: `${dockerLayer}.foreign.diff.tar.gzip` }])),
      /^format: .*foreign/
    ],
    [
      'a foreign layer of OCI',
      () =>
        read(
          layersOf([{ ...descriptor, mediaType: 'application/vnd.oci.image.layer.nondistributable.v1.tar' }])
        ),
      /^format: .*foreign/
    ],
    [
      'a sealed layer',
      () =>
        read(layersOf([{ ...descriptor, mediaType: 'application/vnd.oci.image.layer.v1.tar+encrypted' }])),
      /^format: .*encrypted/
    ],
    ['many layers', () => read(layersOf(Array(128).fill(descriptor))), /^format: it has 128 layers/],
    [
      'many manifests',
      () => read({ ...index, manifests: Array(1001).fill(descriptor) }, indexType),
      /^format: .*1001/
    ],
    [
      'a digest of another kind',
      () => read(layersOf([{ digest: `sha512:${'1'.repeat(128)}`, size: 1 }])),
      /^broken: /
    ],
    ...[0, -1, 1.5, 2 ** 53, '10', null, undefined].map(
      size =>
        [
          `the size ${size}`,
          () => read(layersOf([{ digest, size }])),
          /^broken: a layer has the size /
        ] as const
    )
  ]
  for (const [what, work, expected] of cases) t.match(failure(work), expected, what)
  t.match(read(layersOf(Array(127).fill(descriptor))), { kind: 'image' })
  t.end()
})

test('of an index that is taken which the machine runs best', t => {
  const entries = (...platforms: Array<string | undefined>): IndexEntry[] =>
    platforms.map(platform => ({ ...descriptor, mediaType: '', platform }))
  const pick = (machine: string, ...platforms: Array<string | undefined>) =>
    pickEntry(entries(...platforms), machine).platform
  t.equal(
    pick('linux/amd64', 'unknown/unknown', 'windows/amd64', 'linux/arm64', 'linux/amd64'),
    'linux/amd64'
  )
  t.equal(pick('linux/amd64', 'linux/386', 'linux/x86_64'), 'linux/x86_64')
  t.equal(pick('linux/amd64', 'linux/arm64', 'linux/386'), 'linux/386')
  t.equal(pick('linux/amd64', 'linux/amd64/v3', 'linux/amd64'), 'linux/amd64')
  t.equal(pick('linux/arm64', 'linux/arm/v7', 'linux/arm64/v8'), 'linux/arm64/v8')
  t.equal(pick('linux/arm64/v8', 'linux/arm64'), 'linux/arm64')
  t.equal(pick('linux/arm64', 'linux/arm/v6', 'linux/arm/v7'), 'linux/arm/v7')
  t.equal(pick('linux/arm/v7', 'linux/arm/v5', 'linux/arm/v6', 'linux/arm64'), 'linux/arm/v6')
  t.equal(pick('linux/arm/v6', 'linux/arm', 'linux/arm/v6'), 'linux/arm/v6', 'arm alone is v7')
  t.equal(pick('linux/s390x', 'linux/amd64', 'linux/s390x'), 'linux/s390x')
  t.equal(pick('linux/amd64', 'linux/arm64', undefined), undefined, 'its configuration will tell')
  for (const [machine, ...platforms] of [
    ['linux/amd64', 'linux/arm64', 'windows/amd64', 'unknown/unknown'],
    ['linux/amd64', 'linux/amd64/v3'],
    ['linux/arm/v6', 'linux/arm/v7', 'linux/arm64'],
    ['linux/arm', 'linux/arm/v8'],
    ['linux/amd64']
  ] as const)
    t.match(
      failure(() => pick(machine ?? '', ...platforms)),
      /^platform: no matching manifest for linux\//,
      platforms.join()
    )
  t.match(
    failure(() => pick('linux/amd64', 'linux/arm64', 'unknown/unknown')),
    /\(there are: linux\/arm64\)/
  )
  t.end()
})

test('a configuration tells what it is made for and which layers it has', t => {
  const config = (value: object) => Buffer.from(JSON.stringify(value))
  const rootfs = { type: 'layers', diff_ids: [digest] }
  t.match(readImageConfig(config({ os: 'linux', architecture: 'arm', variant: 'v6', rootfs }), 1), {
    platform: 'linux/arm/v6',
    diffIds: [digest]
  })
  t.match(readImageConfig(config({ architecture: 'amd64', rootfs }), 1), { platform: 'linux/amd64' })
  t.match(readImageConfig(config({ rootfs }), 1), { platform: 'linux' })
  const os = 'linux'
  for (const [value, expected] of [
    [{ os: 'windows', architecture: 'amd64', rootfs }, /^platform: it is made for windows\/amd64/],
    [{ os: ['linux'], rootfs }, /^platform: /],
    [{ os }, /^broken: .*does not name its layers/],
    [{ os, rootfs: null }, /^broken: /],
    [{ os, rootfs: { type: 'other', diff_ids: [digest] } }, /^broken: /],
    [{ os, rootfs: { type: 'layers', diff_ids: ['sha256:1'] } }, /^broken: /],
    [
      { os, rootfs: { type: 'layers', diff_ids: [digest, digest] } },
      /^broken: .*2 layers, and its manifest 1/
    ]
  ] as const)
    t.match(
      failure(() => readImageConfig(config(value), 1)),
      expected,
      JSON.stringify(value)
    )
  for (const text of ['', 'null', '[]', '{'])
    t.match(
      failure(() => readImageConfig(Buffer.from(text), 0)),
      /^broken: .*no JSON object/
    )
  t.end()
})

test('a configuration is written anew with what is known alone, each key once', t => {
  const other = `sha256:${'2'.repeat(64)}`
  const text = `{
    "rootfs": { "type": "layers", "diff_ids": ["${digest}"], "Diff_Ids": ["${other}"] },
    "RootFS": { "type": "layers", "diff_ids": ["${other}"] }, "root\u017fs": 1, "rootf\u017f": { "diff_ids": ["${other}"] },
    "os": "linux", "OS": "windows", "architecture": "amd64", "created": "2026-01-01T00:00:00Z", "parent": "${other}",
    "container_config": { "Cmd": ["x"] },
    "config": {
      "Cmd": ["/bin/sh"], "cmd": ["other"], "Env": ["A=1"], "env": ["A=2"], "MacAddress": "02:42:ac:11:00:02",
      "Labels": { "mine": "1", "__proto__": "2", "busbar-image-instance": "x", "application-id": "y", "managed-by": "z" },
      "labels": { "busbar-image-instance": "x" }
    },
    "history": [{ "created_by": "by hand", "empty_layer": true, "Empty_Layer": false }, 7]
  }`
  const { diffIds, rewritten } = readImageConfig(Buffer.from(text), 1)
  t.same(diffIds, [digest])
  t.equal(
    rewritten.toString(),
    JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      created: '2026-01-01T00:00:00Z',
      config: {
        Env: ['A=1'],
        Cmd: ['/bin/sh'],
        Labels: { mine: '1', ['__proto__']: '2' }
      },
      rootfs: { type: 'layers', diff_ids: [digest] },
      history: [{ created_by: 'by hand', empty_layer: true }, {}]
    })
  )
  t.end()
})

test('names lead where the engine would go by them', t => {
  const hub = { registry: 'docker.io', host: 'registry-1.docker.io' }
  const own = { registry: 'reg.example:5000', host: 'reg.example:5000' }
  for (const [reference, expected] of [
    ['node', { ...hub, path: 'library/node', name: 'node', version: 'latest' }],
    ['node:20', { ...hub, path: 'library/node', version: '20' }],
    ['docker.io/node', { ...hub, path: 'library/node' }],
    ['index.docker.io/team/app', { ...hub, path: 'team/app' }],
    ['team/app', { ...hub, path: 'team/app' }],
    ['reg.example:5000/app', { ...own, path: 'app', version: 'latest' }],
    ['Reg.Example:5000/a/b/c:1', { ...own, path: 'a/b/c', version: '1' }],
    [`reg.example:5000/app:1@${digest}`, { ...own, path: 'app', version: digest }],
    ['localhost/app', { registry: 'localhost', host: 'localhost', path: 'app' }],
    ['Team/app', { registry: 'team', path: 'app' }]
  ] as const)
    t.match(locateImage(reference), expected, reference)
  for (const reference of [
    '',
    'Node',
    'a b',
    'a//b',
    '-x/y',
    '127.0.0.1:99999/app',
    '1.2.3.4.5/app',
    'x'.repeat(600)
  ])
    t.throws(() => locateImage(reference), { code: 'E_IMAGE_REFERENCE' }, reference)
  t.end()
})

test('what has very many members is refused unread, and a long text in one of them is not', t => {
  const withLabels = (labels: string) => () =>
    readImageConfig(
      Buffer.from(`{"os":"linux","rootfs":{"diff_ids":["${digest}"]},"config":{"Labels":{${labels}}}}`),
      1
    )
  const many = Array.from({ length: 20_000 }, (_, at) => `"${at}":""`).join()
  t.match(failure(withLabels(many)), /^broken: .*very many members/)
  t.match(
    failure(withLabels(`"a":${'['.repeat(20_001)}${']'.repeat(20_001)}`)),
    /^broken: .*very many members/
  )
  const text = JSON.stringify('{"a":[1,2,"\\",{["]}'.repeat(10_000))
  t.equal(JSON.parse(withLabels(`"a":${text}`)().rewritten.toString()).config.Labels.a, JSON.parse(text))
  t.match(
    failure(() => readManifest(Buffer.from(`{"schemaVersion":2,"layers":{${many}}}`), undefined)),
    /./
  )
  t.end()
})
