import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { settingsFrom } from '../../../sdk/testing/settings-from.js'
import { chooseArguments } from '../builders/dockerfile-builder.js'
import { readPatterns, selectEntries } from '../context/build-context.js'
import { cleanPath, describeDockerfiles, openRoot, readSource } from '../context/source-tree.js'
import {
  checkBranch,
  checkCommit,
  credentialsFor,
  parseHttpRepository,
  parseRepository
} from '../git/repository-address.js'
import { refusalOf } from '../network/host-policy.js'
import { imageTag } from '../registry/image-names.js'
import { pinnedReference } from '../registry/pinned-image.js'
import { buildLimits, settings } from '../settings.js'
import { folder } from './kit.js'
import { policyOf } from './policy-of.js'

async function tree(t: Test, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await folder(t)
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), content)
  }
  return directory
}

test('addresses of repositories are read, and credentials in them kept apart', t => {
  t.match(parseRepository('https://GitHub.com/team/app.git/'), {
    url: 'https://github.com/team/app.git',
    origin: 'https://github.com',
    host: 'github.com',
    port: 443,
    isSecure: true,
    userInfo: null
  })
  t.match(parseRepository('http://me:p%40ss@git.lan:3000/a/b'), {
    url: 'http://git.lan:3000/a/b',
    port: 3000,
    isSecure: false,
    userInfo: 'me:p@ss'
  })
  t.match(parseRepository('http://[::1]:8080/a'), { host: '::1', port: 8080 })
  t.match(parseRepository('http://0x7f.1/a'), { host: '127.0.0.1' })
  t.match(parseRepository('https://git.lan/a'), { kind: 'http' })
  for (const ssh of ['git@github.com:team/app.git', 'ssh://git@github.com/team/app', 'me@host:app'])
    t.match(parseRepository(ssh), { kind: 'ssh', url: ssh, port: 22 }, ssh)
  t.throws(() => parseHttpRepository('ssh://git@github.com/team/app'), { code: 'E_SOURCE_ADDRESS' })
  for (const wrong of [
    '',
    'app',
    '/srv/app.git',
    'file:///srv/app',
    'ftp://x/y',
    'git://x/y',
    'https://',
    'https://x',
    'https://x/',
    'https://x/y?z',
    'https://x/y#z',
    'https://%zz@x/y',
    'https://me:%ff@x/y',
    'https://x/a b',
    'ext::sh -c x',
    '--upload-pack=x',
    'git+ssh://git@x/y',
    'ssh://-oProxyCommand=x/y'
  ]) {
    t.throws(() => parseRepository(wrong), { status: 400, code: 'E_SOURCE_ADDRESS' }, JSON.stringify(wrong))
  }
  t.throws(
    () => parseRepository('ftp://me:secret@x/y'),
    { message: /ftp:\/\/x\/y/ },
    'an error does not repeat a password'
  )
  t.end()
})

test('branch and commit names that git would read as something else are refused', t => {
  for (const good of ['main', 'feature/x', 'release-1.2', 'a_b', 'dependabot/npm/x@1.0', 'fix#12', 'c++'])
    t.doesNotThrow(() => checkBranch(good), good)
  for (const wrong of [
    '-x',
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
    'a//b',
    '.a',
    'a/.b',
    'a.',
    'a.lock',
    'a.lock/b',
    'a@{1}',
    '@',
    'a\nb',
    'a\u0000',
    'x'.repeat(256)
  ]) {
    t.throws(
      () => checkBranch(wrong),
      { status: 400, message: /^invalid branch name/ },
      JSON.stringify(wrong)
    )
  }
  t.doesNotThrow(() => checkCommit('a'.repeat(40)))
  for (const wrong of ['HEAD', 'abc123', 'A'.repeat(40), 'a'.repeat(41)])
    t.throws(() => checkCommit(wrong), { code: 'E_SOURCE_COMMIT_NAME' })
  t.end()
})

test('a token goes by the user name its provider expects', t => {
  const user = (repo: string, token: string | null) => credentialsFor(parseRepository(repo), token)
  t.equal(user('https://github.com/a/b', 'T'), 'x-access-token:T')
  t.equal(user('https://gitlab.example.com/a/b', 'T'), 'oauth2:T')
  t.equal(user('https://bitbucket.org/a/b', 'T'), 'x-token-auth:T')
  t.equal(user('https://gitea.example.com/a/b', 'T'), 'oauth2:T')
  t.equal(user('https://git.example.com/a/b', 'T'), 'T:')
  t.equal(user('https://bitbucket.org/a/b', 'me:app-password'), 'me:app-password')
  t.equal(user('https://me:pw@git.example.com/a/b', null), 'me:pw')
  t.equal(user('https://me:pw@git.example.com/a/b', 'T'), 'T:')
  t.equal(user('https://git.example.com/a/b', null), null)
  t.end()
})

test('GIT_PRIVATE_HOSTS decides about private addresses only, and never lets metadata through', t => {
  const decide = (setting: string | undefined, address: string, host = 'git.lan', isLoopbackOnly = false) =>
    refusalOf(policyOf(setting, isLoopbackOnly), host, address)
  const local = [
    '127.0.0.1',
    '10.1.2.3',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.1.1',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '::1',
    '::',
    'fe80::1',
    'fd12::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    '2002:a00:1::',
    '::10.0.0.1'
  ]
  for (const address of local) {
    t.equal(decide('deny', address), 'private', address)
    t.equal(decide('allow', address), null, address)
  }
  for (const address of ['93.184.216.34', '172.32.0.1', '2606:2800:220:1::1', '::ffff:93.184.216.34'])
    t.equal(decide('deny', address), null, address)
  for (const address of [
    '169.254.169.254',
    '::ffff:169.254.169.254',
    'fd00:ec2::254',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::1'
  ]) {
    for (const setting of ['allow', 'deny', '0.0.0.0/0, ::/0', 'git.lan'])
      t.equal(decide(setting, address), 'metadata', `${setting} ${address}`)
  }
  t.equal(
    decide(undefined, '10.0.0.1', 'git.lan', true),
    null,
    'allowed while only this machine can reach the platform'
  )
  t.equal(decide(undefined, '10.0.0.1'), 'private')
  t.equal(decide('10.0.0.0/8,Git.lan', '10.9.9.9', 'other'), null)
  t.equal(decide('10.0.0.0/8,Git.lan', '192.168.1.1', 'GIT.lan'), null)
  t.equal(decide('10.0.0.0/8,Git.lan', '192.168.1.1', 'other'), 'private')
  t.equal(decide('192.168.1.1 fd12::/16', 'fd12::7', 'other'), null)
  for (const wrong of ['10.0.0.0/33', 'a b/c', 'http://git.lan'])
    t.throws(() => policyOf(wrong), { message: /^GIT_PRIVATE_HOSTS is .*; it takes allow, deny, or/ }, wrong)
  t.end()
})

test('paths stay inside the source tree', async t => {
  t.equal(cleanPath('', 'x'), '')
  t.equal(cleanPath('./a//b/', 'x'), 'a/b')
  t.equal(cleanPath('a/../b', 'x'), 'b')
  for (const wrong of ['..', '../a', 'a/../../b', '/etc', '/', 'a\\..\\b', 'a\u0000']) {
    t.throws(
      () => cleanPath(wrong, 'the root directory'),
      { status: 400, code: 'E_SOURCE_PATH' },
      JSON.stringify(wrong)
    )
  }
  const directory = await tree(t, { 'apps/web/Dockerfile': 'FROM x', 'apps/api/a': '', 'lib/a': '' })
  await symlink('/etc', join(directory, 'system'))
  await symlink('../../..', join(directory, 'apps/web/up'))
  await symlink('apps/web', join(directory, 'web'))
  await symlink('loop', join(directory, 'loop'))
  t.ok((await openRoot(directory, 'apps/web')).endsWith('/apps/web'))
  t.ok((await openRoot(directory, 'web')).endsWith('/apps/web'), 'a link inside the tree is followed')
  t.equal(await openRoot(directory, ''), await openRoot(directory, './'))
  await t.rejects(openRoot(directory, 'nope'), {
    code: 'E_SOURCE_ROOT',
    message: /nope does not exist.*: apps, lib$/
  })
  await t.rejects(openRoot(directory, 'lib/a'), { code: 'E_SOURCE_ROOT' })
  for (const link of ['system', 'apps/web/up', 'system/ssl', 'loop'])
    await t.rejects(openRoot(directory, link), { code: 'E_SOURCE_LINK' }, link)
  await t.rejects(readSource(directory, 'system/passwd'), {
    code: 'E_SOURCE_LINK',
    message: /symbolic link that leads out/
  })
  t.equal(await readSource(directory, 'web/Dockerfile'), 'FROM x')
  t.equal(await readSource(directory, 'apps'), undefined)
  t.equal(await readSource(directory, 'apps/web/Dockerfile/x'), undefined)
})

test('who misses a Dockerfile is shown those that are there, or what is there instead', async t => {
  t.equal(
    await describeDockerfiles(
      await tree(t, {
        'docker/prod.Dockerfile': '',
        'Dockerfile.dev': '',
        'Dockerfile.dev.dockerignore': '',
        'node_modules/x/Dockerfile': ''
      })
    ),
    'found were: Dockerfile.dev, docker/prod.Dockerfile; set the Dockerfile path to one of them'
  )
  t.equal(
    await describeDockerfiles(await tree(t, { 'package.json': '', 'src/a.js': '' })),
    'the directory holds package.json, src: add a Dockerfile or choose another build type'
  )
  t.equal(
    await describeDockerfiles(await folder(t)),
    'the directory is empty: add a Dockerfile or choose another build type'
  )
})

test('build arguments are the variables that are declared and not secret', t => {
  const variables = [
    { key: 'MODE', value: 'production', isSecret: false },
    { key: 'TOKEN', value: 'x', isSecret: true },
    { key: 'UNUSED', value: 'y', isSecret: false }
  ]
  t.same(chooseArguments(new Set(['MODE', 'TOKEN', 'OTHER']), variables), {
    buildArgs: { MODE: 'production' },
    secret: ['TOKEN']
  })
  t.end()
})

test('.dockerignore leaves out what the docker command would leave out', async t => {
  const directory = await tree(t, {
    Dockerfile: '',
    '.dockerignore': '',
    'a.txt': '',
    'a.log': '',
    'keep.log': '',
    'src/b.log': '',
    'src/c.ts': '',
    'node_modules/x/index.js': '',
    'docs/readme.md': '',
    'docs/deep/important.md': '',
    'docs/deep/other.md': ''
  })
  const select = async (patterns: string) =>
    [...(await selectEntries(directory, readPatterns(patterns, 'x'))).included]
      .filter(path => path.includes('.') || path === 'Dockerfile' || path === 'node_modules')
      .sort()
  t.same(await select('# comment\n*.log\n!keep.log\nnode_modules\ndocs\n!docs/deep/important.md\n'), [
    '.dockerignore',
    'Dockerfile',
    'a.txt',
    'docs/deep/important.md',
    'keep.log',
    'src/b.log',
    'src/c.ts'
  ])
  t.same(await select('**/*.log\n/src/\nnode_modules/\ndocs'), ['.dockerignore', 'Dockerfile', 'a.txt'])
  t.same(await select('*\n!src/*.ts'), ['src/c.ts'])
  t.equal((await selectEntries(directory, readPatterns('docs\n', 'x'))).included.has('docs'), false)
})

test('an ignore file that cannot be used is named with the reason', t => {
  t.equal(
    readPatterns('a\r\n# b\n\n **/**/**/**/**/x*y*z*.ts \n', '.dockerignore').length,
    2,
    'stars are not counted'
  )
  t.throws(() => readPatterns('x/[', '.dockerignore'), {
    code: 'E_SOURCE_IGNORE',
    message:
      '.dockerignore cannot be used: the pattern x/[ has a [ without its ], or a - or ] in it that needs a backslash'
  })
  t.throws(() => readPatterns('abcdefg\n'.repeat(3000), 'x'), {
    code: 'E_SOURCE_IGNORE',
    message: /more than 16384 characters/
  })
  t.end()
})

test('limits follow the machine unless they are set', t => {
  const config = { checkout_mib: 1, disk_floor_mib: 1, wait_minutes: 1 }
  const machine = { memoryBytes: 4 * 2 ** 30, cores: 4 }
  t.same(buildLimits(config, machine), { memoryBytes: Math.floor(4 * 2 ** 30 * 0.6), cpus: 3.5 })
  t.same(buildLimits(config, { memoryBytes: 2 ** 29, cores: 1 }), { memoryBytes: 512 * 2 ** 20, cpus: 0.5 })
  t.same(buildLimits({ ...config, memory_mib: 1024, cpus: 8 }, machine), { memoryBytes: 2 ** 30, cpus: 4 })
  t.end()
})

test('a time-out that is no number of minutes is refused by name', t => {
  const read = (text?: string) =>
    settingsFrom(settings, { BUILD_TIMEOUT_MINUTES: text, IMAGE_PULL_TIMEOUT_MINUTES: text })
  t.match(read(), { build_timeout_minutes: 30, image_pull_timeout_minutes: 10 })
  t.match(read('0.5'), { build_timeout_minutes: 0.5, image_pull_timeout_minutes: 0.5 })
  for (const wrong of ['x', '0', '-1', 'Infinity', '0x10', '1e3', '10081'])
    t.throws(
      () => read(wrong),
      { message: /^BUILD_TIMEOUT_MINUTES is "\S+"; it takes a number above 0, up to 10080; IMAGE_PULL_/ },
      wrong
    )
  t.end()
})

test('images get names the engine takes, and are pinned by the repository they came from', t => {
  const digest = `sha256:${'a'.repeat(64)}`
  t.equal(
    imageTag({ slug: 'Shop-web_1-1a2b3c4d', token: '0123456789abcdef0123', deploymentId: '0f1e2d3c-0000' }),
    'shop-web-1-1a2b3c4d-0123456789abcdef0123:0f1e2d3c'
  )
  const image = (...repoDigests: string[]) => ({
    id: 'sha256:id',
    repoDigests,
    exposedPorts: [],
    sizeBytes: 1
  })
  t.equal(pinnedReference('node:20', image(`other@${digest}`, `node@${digest}`)), `node@${digest}`)
  t.equal(pinnedReference('docker.io/library/node', image(`node@${digest}`)), `node@${digest}`)
  t.equal(pinnedReference('docker.io/team/app', image(`team/app@${digest}`)), `team/app@${digest}`)
  t.equal(
    pinnedReference('localhost:5000/app:1', image(`app@${digest}`, `localhost:5000/app@${digest}`)),
    `localhost:5000/app@${digest}`
  )
  t.equal(pinnedReference('busybox:lab', image()), 'sha256:id')
  t.end()
})
