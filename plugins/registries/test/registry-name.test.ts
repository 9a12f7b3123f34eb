import { test } from 'tap'
import { parseRegistry, registryOfImage } from '../registry-name.js'

test('a registry is its host, however it is written', async t => {
  for (const [written, registry] of [
    ['ghcr.io', 'ghcr.io'],
    [' GHCR.io ', 'ghcr.io'],
    ['https://ghcr.io/', 'ghcr.io'],
    ['https://registry.example.com:5000/v2/', 'registry.example.com:5000'],
    ['http://127.0.0.1:5000', '127.0.0.1:5000'],
    ['registry.example.com:443', 'registry.example.com'],
    ['localhost', 'localhost'],
    ['localhost:5000', 'localhost:5000'],
    ['docker.io', 'docker.io'],
    ['index.docker.io', 'docker.io'],
    ['https://index.docker.io/v1/', 'docker.io'],
    ['registry-1.docker.io', 'docker.io'],
    ['hub.docker.com', 'docker.io']
  ] as const)
    t.equal(parseRegistry(written), registry, written)
})

test('what no image can name is no registry', async t => {
  for (const written of [
    '',
    'team',
    'ghcr.io/team',
    'ghcr.io/team/app:1',
    'user@ghcr.io',
    'https://user:secret@ghcr.io',
    'ftp://ghcr.io',
    'ghcr.io:99999',
    'ghcr.io:x',
    'a b.io',
    '.io',
    '[::1]:5000',
    'ghcr.io?x',
    'ghcr.io#x',
    'ghcr.io\u0000'
  ])
    t.equal(parseRegistry(written), undefined, JSON.stringify(written))
})

test('an image has the account of its registry, and of no other host', async t => {
  for (const [image, registry] of [
    ['node', 'docker.io'],
    ['team/app:1', 'docker.io'],
    ['docker.io/team/app', 'docker.io'],
    ['index.docker.io/team/app', 'docker.io'],
    ['registry-1.docker.io/team/app', 'docker.io'],
    ['registry.hub.docker.com/team/app', 'registry.hub.docker.com'],
    ['GHCR.io/team/app', 'ghcr.io'],
    ['registry.example.com:443/app', 'registry.example.com'],
    ['registry.example.com:5000/app', 'registry.example.com:5000'],
    [`ghcr.io/team/app@sha256:${'0'.repeat(64)}`, 'ghcr.io'],
    ['ghcr.io.example.com/team/app', 'ghcr.io.example.com']
  ] as const)
    t.equal(registryOfImage(image), registry, image)
})
