import type { Log } from 'busbar/sdk'
import { test } from 'tap'
import { parseSshRepository } from '../api.js'
import { buildTypesOf } from '../build-types.js'
import { decideSource, decideSourceUpdate, decideToken } from '../source.js'
import { addressOf, parseBranch, parseBuildpacks, parseImage, parsePath, parseRepo } from '../source-text.js'

const fault = (field: string) => ({ status: 400, code: 'E_APPLICATION_INVALID', details: { field } })

const buildTypes = ['dockerfile', 'railpack', 'static']
const git = {
  name: 'web',
  type: 'git',
  build_type: 'dockerfile',
  source_repo: 'https://git.example.com/a/b.git'
} as const
const image = { name: 'web', type: 'image', build_type: 'image', source_image: 'nginx:1.27' } as const

test('a git application takes what belongs to git, and auto deploy follows its branch', async t => {
  const source = decideSource(
    { ...git, branch: ' main ', dockerfile_path: './docker/Dockerfile', root_directory: '/web/' },
    buildTypes
  )
  t.match(source, {
    type: 'git',
    build_type: 'dockerfile',
    branch: 'main',
    auto_deploy_branch: 'main',
    dockerfile_path: 'docker/Dockerfile',
    root_directory: 'web',
    source_image: null
  })
})

test('every field that does not fit the type is refused by name', async t => {
  const refused = (body: object, field: string) =>
    t.throws(() => decideSource(body as typeof git, buildTypes), fault(field), JSON.stringify(body))
  refused({ ...git, source_repo: ' ' }, 'source_repo')
  refused({ ...git, source_image: 'nginx' }, 'source_image')
  refused({ ...git, build_type: 'image' }, 'build_type')
  refused({ ...image, source_image: '' }, 'source_image')
  refused({ ...image, build_type: 'railpack' }, 'build_type')
  refused({ ...image, source_repo: 'https://git.example.com/a' }, 'source_repo')
  refused({ ...image, dockerfile_path: 'Dockerfile' }, 'dockerfile_path')
})

const silent = { error: () => {} } as unknown as Log
const buildersOf = (...lists: readonly string[][]) => {
  const entries = lists.map((names, index) => ({
    key: String(index),
    plugin: 'x',
    value: { buildTypes: () => names }
  }))
  return {
    entries: () => entries,
    keys: () => entries.map(({ key }) => key),
    get: (key: string) => entries.find(entry => entry.key === key)?.value
  }
}

test('a git application is built by one of the builders that are there, and keeps what it had', async t => {
  t.same(buildTypesOf(buildersOf(['static', 'bazel', 'image'], ['bazel', 'buck']), silent), [
    'bazel',
    'buck',
    'static'
  ])
  t.same(
    buildTypesOf(buildersOf(), silent),
    ['buildpacks', 'dockerfile', 'nixpacks', 'railpack', 'static'],
    'nobody says what there is'
  )
  t.equal(decideSource({ ...git, build_type: 'bazel' }, ['bazel']).build_type, 'bazel')
  t.throws(() => decideSource(git, ['bazel', 'buck']), { message: /build_type must be one of bazel, buck / })
  const kept = { type: 'git', build_type_override: 'gone' } as never
  t.same(decideSourceUpdate(kept, { build_type_override: 'gone' }, ['bazel']), {
    build_type_override: 'gone'
  })
  t.throws(() => decideSourceUpdate(kept, { build_type_override: 'away' }, ['bazel']), {
    message: /build_type_override must be empty or one of bazel /
  })
})

test('a repository is an http(s) URL or an address of ssh, without credentials', async t => {
  for (const good of [
    'https://github.com/a/b',
    'http://10.0.0.1:3000/a/b.git',
    'git@github.com:a/b.git',
    'ssh://git@h/a',
    'ssh://git@git.example.com:2222/a/b.git'
  ])
    t.equal(parseRepo(good), good)
  for (const bad of [
    'file:///etc',
    '/srv/repo',
    'ssh://git:secret@h/a',
    'https://',
    'ext::sh -c id',
    '-upload-pack@h:x',
    'https://u:p@h/a',
    'https://token@h/a',
    'https://h/a?x=1',
    'https://h/a b'
  ]) {
    t.throws(() => parseRepo(bad), fault('source_repo'), bad)
  }
})

test('an address of ssh is read in both forms, and can be nothing else to git, ssh or a shell', async t => {
  t.same(parseSshRepository('git@GitHub.com:owner/repo.git'), {
    url: 'git@github.com:owner/repo.git',
    user: 'git',
    host: 'github.com',
    port: 22
  })
  t.match(parseSshRepository('git@ssh.dev.azure.com:v3/org/My%20Project/repo/'), {
    url: 'git@ssh.dev.azure.com:v3/org/My%20Project/repo'
  })
  t.match(parseSshRepository('ssh://host/~me/repo'), { url: 'ssh://git@host/~me/repo', user: 'git' })
  t.match(parseSshRepository('SSH://me@host:2222/a/b.git'), {
    url: 'ssh://me@host:2222/a/b.git',
    user: 'me',
    port: 2222
  })
  t.match(parseSshRepository('ssh://git@[::1]:22/a'), { url: 'ssh://git@[::1]/a', host: '::1', port: 22 })
  for (const bad of [
    'git@-oProxyCommand=id:a/b',
    '-oProxyCommand=id@host:a/b',
    'ssh://-oProxyCommand=id/a',
    'ssh://git@-host/a',
    'ssh://-git@host/a',
    'git@host:-u',
    'git@host:a/-u',
    'git@host:a/../b',
    'git@host:',
    'git@host:/',
    'ssh://git@host',
    'ssh://git@host/',
    'ssh://git@host:0/a',
    'ssh://git@host:70000/a',
    'ssh://git@host:/a',
    'ssh://git@host/%2e%2e/a',
    'ssh://git@host%20-oProxyCommand=id/a',
    'ssh://git:password@host/a',
    'ssh://git@[fe80::1%25eth0]/a',
    'ssh://git@[::zz]/a',
    'ssh://git@host/a?x',
    'ssh://git@host/a#x',
    "git@host:a'b",
    'git@host:a"b',
    'git@host:a b',
    'git@host:a\nb',
    'git@host:$(id)',
    'git@host:`id`',
    'git@host:a;id',
    'git@host:a\\b',
    'git@ho$t:a',
    'git@ho st:a',
    'git@host\n:a',
    'g t@host:a',
    'host:a/b',
    `git@host:${'a'.repeat(2000)}`
  ])
    t.equal(parseSshRepository(bad), undefined, bad.slice(0, 60))
})

test('a branch is what git accepts and no command line can mistake', async t => {
  for (const good of ['main', 'feature/x-1', 'release/1.2', 'größe', 'dependabot/npm/@types+node'])
    t.equal(parseBranch(good), good)
  for (const bad of [
    '-d',
    '--upload-pack=x',
    'a..b',
    'a b',
    'a~1',
    'a^',
    'a:b',
    'a?',
    'a*',
    'a[',
    'a\\b',
    '/a',
    'a/',
    'a.lock',
    'a//b',
    '.a',
    'a/.b',
    'a@{1}',
    '$(id)',
    'a;b',
    'a\nb'
  ]) {
    t.throws(() => parseBranch(bad), { status: 400, message: 'invalid branch name' }, bad)
  }
  t.equal(parseBranch(''), null)
  t.equal(parseBranch(null), null)
})

test('a path stays inside the repository', async t => {
  t.equal(parsePath('./a//b/', 'root_directory'), 'a/b')
  t.equal(parsePath('.', 'root_directory'), null)
  for (const bad of ['../a', 'a/../../b', 'a\\..\\b'])
    t.throws(() => parsePath(bad, 'root_directory'), fault('root_directory'), bad)
})

test('an image is a reference, not a flag or a sentence', async t => {
  for (const good of [
    'nginx',
    'nginx:1.27',
    'registry.example.com:5000/team/app:1',
    'GHCR.io/a/b:V1',
    'a__b/c-d.e',
    `a@sha256:${'0'.repeat(64)}`
  ])
    t.equal(parseImage(good, 'source_image'), good)
  for (const bad of [
    '-v',
    'a b',
    'a:b:c',
    'https://x',
    'a/',
    'Nginx',
    'team/App',
    'a/../b',
    'a//b',
    'a_-_b',
    'a@sha256:12',
    'a:-x'
  ])
    t.throws(() => parseImage(bad, 'source_image'), fault('source_image'), bad)
})

test('custom buildpacks are a JSON array of URIs', async t => {
  t.equal(parseBuildpacks('["a/b", "urn:cnb:x"]'), '["a/b","urn:cnb:x"]')
  t.equal(parseBuildpacks(''), '[]')
  for (const bad of ['{}', '[1]', 'x', '["-e"]', '["a b"]'])
    t.throws(() => parseBuildpacks(bad), fault('custom_buildpacks'), bad)
})

const stored = { type: 'git', source_repo: git.source_repo, has_git_credentials: true } as never

test('an update keeps what is absent and clears what is null or empty', async t => {
  t.same(decideSourceUpdate(stored, {}, buildTypes), {})
  t.same(
    decideSourceUpdate(stored, { branch: null, dockerfile_path: '', build_type_override: '' }, buildTypes),
    { branch: null, dockerfile_path: null, build_type_override: null }
  )
  t.throws(() => decideSourceUpdate(stored, { source_repo: '' }, buildTypes), fault('source_repo'))
  t.throws(
    () => decideSourceUpdate(stored, { build_type_override: 'image' }, buildTypes),
    fault('build_type_override')
  )
  t.throws(
    () => decideSourceUpdate({ type: 'image' } as never, { build_type_override: 'railpack' }, buildTypes),
    fault('build_type_override')
  )
})

test('a stored token is never kept when the repository moves to another host', async t => {
  const elsewhere = [
    'https://evil.example.com/a/b.git',
    'http://git.example.com/a/b.git',
    'https://git.example.com:8443/a/b.git',
    'git@git.example.com:a/b.git'
  ]
  for (const repo of elsewhere)
    t.throws(
      () => decideToken(stored, repo, undefined),
      { status: 400, code: 'E_APPLICATION_TOKEN_NEEDED', details: { field: 'git_token' } },
      repo
    )
  for (const repo of elsewhere)
    t.throws(
      () => decideToken(stored, repo, ''),
      { code: 'E_APPLICATION_TOKEN_NEEDED' },
      'empty keeps, so it is refused as well'
    )
  t.same(decideToken(stored, 'https://GIT.example.com/other.git', undefined), { kind: 'keep' })
  t.same(decideToken(stored, elsewhere[0], 'fresh'), { kind: 'set', token: 'fresh' })
  t.same(decideToken(stored, elsewhere[0], null), { kind: 'drop' })
  t.same(decideToken({ source_repo: git.source_repo, has_git_credentials: false }, elsewhere[0], undefined), {
    kind: 'keep'
  })
})

test('the address of a repository is protocol, host and port', async t => {
  t.equal(addressOf('https://Git.example.com/x'), 'https://git.example.com')
  t.equal(addressOf('git@Git.example.com:x'), 'ssh://git.example.com')
  t.equal(addressOf('ssh://git@git.example.com:2222/x'), 'ssh://git.example.com:2222')
})
