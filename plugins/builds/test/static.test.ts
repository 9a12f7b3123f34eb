import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type DeployLab, engine, openLab } from '../../deployments/test/deploy-lab.js'
import { findSite } from '../builders/static-site.js'
import { folder } from './kit.js'

/** A platform whose static sites are served by an image that was made here. */
async function openStaticLab(t: Test): Promise<DeployLab> {
  await promisify(execFile)(join(import.meta.dirname, '../../../lab/make-images.sh'), ['nginx'])
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const configured = await admin.put('/api/plugins/builds/config', {
    static_image: 'nginx:lab',
    static_build_image: 'node:20'
  })
  if (configured.status !== 200) throw new Error(JSON.stringify(configured.body))
  return lab
}

const staticSite = { build_type: 'static', container_port: null, health_check_path: '/' }

void test('an image that cannot be had is told with the setting that names another one', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  t.equal(
    (await admin.put('/api/plugins/builds/config', { static_image: '127.0.0.1:1/no/such:1' })).status,
    200
  )
  const application = await lab.application('unserved', { 'index.html': 'x' }, staticSite)
  t.match(await application.deployed(), {
    status: 'failed',
    error_message:
      /cannot be had: .*127\.0\.0\.1:1.*; or name another one by static_image and static_build_image of the builds plugin/
  })
})

interface Answer {
  readonly status: number
  readonly type: string | null
  readonly text: string
  readonly headers: Headers
}

async function answer(url: string, path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(`${url}${path}`, { headers, redirect: 'manual' })
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    text: await response.text(),
    headers: response.headers
  }
}

void test('a static site is served hardened, with its types and its page for what is not found, and without what is hidden', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openStaticLab(t)
  const application = await lab.application(
    'plain',
    {
      'README.md': 'not part of the site',
      '.env': 'SECRET=outside',
      'public/index.html': '<h1>home</h1>',
      'public/404.html': '<h1>lost</h1>',
      'public/about.html': '<h1>about</h1>',
      'public/docs/index.html': '<h1>docs</h1>',
      'public/empty/keep.txt': 'x',
      'public/style.css': 'body {}',
      'public/app.mjs': 'export {}',
      'public/site.webmanifest': '{}',
      'public/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
      'public/.env': 'SECRET=inside',
      'public/.git-credentials': 'secret',
      'public/sub/.htpasswd': 'secret',
      'public/.well-known/security.txt': 'Contact: us'
    },
    staticSite
  )
  const deployment = await application.deployed()
  t.match(
    deployment,
    { status: 'success', health_status: 'passing', container_port: 8080 },
    deployment.error_message ?? ''
  )
  t.match(deployment.build_logs, /Serving public as it is, on nginx:lab/)
  const { direct_url: url } = await application.read()

  const home = await answer(url, '/')
  t.match(home, { status: 200, type: /^text\/html; charset=utf-8$/i, text: '<h1>home</h1>' })
  t.equal(home.headers.get('x-content-type-options'), 'nosniff')
  t.equal(home.headers.get('cache-control'), 'no-cache')
  t.notMatch(home.headers.get('server'), /\d/)
  t.equal((await answer(url, '/', { 'if-none-match': home.headers.get('etag') ?? '' })).status, 304)
  for (const [path, type] of [
    ['/style.css', /^text\/css/],
    ['/app.mjs', /^text\/javascript/],
    ['/logo.svg', /^image\/svg\+xml/],
    ['/site.webmanifest', /^application\/manifest\+json/],
    ['/.well-known/security.txt', /^text\/plain/]
  ] as const) {
    t.match(await answer(url, path), { status: 200, type }, path)
  }
  t.match(await answer(url, '/about'), { status: 200, text: '<h1>about</h1>' })
  const redirected = await answer(url, '/docs')
  t.match(
    [redirected.status, redirected.headers.get('location')],
    [301, '/docs/'],
    'no host and no port of the container is told'
  )
  t.match(await answer(url, '/docs/'), { status: 200, text: '<h1>docs</h1>' })
  for (const path of [
    '/nothing',
    '/nothing.js',
    '/empty/',
    '/.env',
    '/.git-credentials',
    '/sub/.htpasswd',
    '/../.env',
    '/README.md'
  ]) {
    t.match(await answer(url, path), { status: 404, text: '<h1>lost</h1>' }, path)
  }

  const [container] = await application.containers()
  const seen = await engine.getContainer(container?.Id ?? '').inspect()
  t.match(seen, { Config: { User: '65534:65534' }, HostConfig: { ReadonlyRootfs: true, CapDrop: ['ALL'] } })
  const { output } = await run(container?.Id ?? '', ['find', '/busbar', '-name', '.*'])
  t.equal(output.trim(), '/busbar/site/.well-known', 'hidden files are not even in the image')

  await lab.k.as.session().then(async admin => await admin.post(`${application.path}/stop`))
  const stopped = await engine.getContainer(container?.Id ?? '').inspect()
  t.equal(stopped.State.ExitCode, 0, 'it ends by itself when it is told to')
})

void test('a site with a build script is built with the variables that are not secret, and its unknown paths lead to index.html', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openStaticLab(t)
  const admin = await lab.k.as.session()
  const files = {
    'package.json': JSON.stringify({
      name: 'site',
      version: '1.0.0',
      scripts: { build: 'node build.mjs' }
    }),
    'package-lock.json': JSON.stringify({
      name: 'site',
      version: '1.0.0',
      lockfileVersion: 3,
      packages: { '': { name: 'site', version: '1.0.0' } }
    }),
    'index.html': 'what the build begins with',
    'public/robots.txt': 'x',
    'build.mjs': `import { mkdirSync, writeFileSync } from 'node:fs'
      mkdirSync('dist/assets', { recursive: true })
      writeFileSync('dist/index.html', 'title=' + process.env.TITLE + ' key=' + process.env.API_KEY)
      writeFileSync('dist/assets/app.js', 'x')
      writeFileSync('dist/.env.production', 'hidden')`
  }
  const application = await lab.application('built', files, staticSite)
  const variables = (more: object[] = []) => ({
    vars: [
      { key: 'TITLE', value: 'A, "B" & $C', is_secret: false },
      { key: 'API_KEY', value: 'very-secret-key', is_secret: true },
      ...more
    ]
  })
  t.equal((await admin.put(`${application.path}/env`, variables())).status, 200)
  const deployment = await application.deployed()
  t.match(deployment, { status: 'success' }, deployment.error_message ?? '')
  t.match(deployment.build_logs, /npm ci/)
  t.match(deployment.build_logs, /busbar: serving dist/)
  t.match(deployment.build_logs, /The build does not see API_KEY/)
  const { direct_url: url } = await application.read()
  t.match(await answer(url, '/'), { status: 200, text: 'title=A, "B" & $C key=undefined' })
  t.match(await answer(url, '/users/7'), { status: 200, text: /^title=/ }, 'the browser routes it')
  t.equal((await answer(url, '/assets/app.js')).status, 200)
  t.equal((await answer(url, '/assets/gone.js')).status, 404, 'a missing file is not answered with a page')
  t.equal((await answer(url, '/.env.production')).status, 404)

  await t.test('unless the variable STATIC_SPA says otherwise', async t => {
    t.equal(
      (
        await admin.put(
          `${application.path}/env`,
          variables([{ key: 'STATIC_SPA', value: 'false', is_secret: false }])
        )
      ).status,
      200
    )
    t.match(await application.deployed(), { status: 'success' })
    t.equal((await answer((await application.read()).direct_url, '/users/7')).status, 404)
    t.equal(
      (
        await admin.put(
          `${application.path}/env`,
          variables([{ key: 'STATIC_SPA', value: 'maybe', is_secret: false }])
        )
      ).status,
      200
    )
    t.match(await application.deployed(), {
      status: 'failed',
      error_message: /the variable STATIC_SPA is maybe: write true or false/
    })
  })

  await t.test('what is nowhere is told with what is there, and STATIC_DIRECTORY names it', async t => {
    t.equal((await admin.put(`${application.path}/env`, variables())).status, 200)
    t.teardown(async () => await application.push(files))
    await application.push({
      'build.mjs':
        "import { mkdirSync, writeFileSync } from 'node:fs'; mkdirSync('web/site', { recursive: true }); writeFileSync('web/site/index.html', 'elsewhere')"
    })
    t.match(await application.deployed(), {
      status: 'failed',
      error_message:
        /npm run build left nothing to serve: an index\.html was looked for in dist, build, out.*found were: .*public\/, web\/; name the folder by the variable STATIC_DIRECTORY/
    })
    t.equal(
      (
        await admin.put(
          `${application.path}/env`,
          variables([{ key: 'STATIC_DIRECTORY', value: 'web/site', is_secret: false }])
        )
      ).status,
      200
    )
    t.match(await application.deployed(), { status: 'success' })
    t.equal((await answer((await application.read()).direct_url, '/')).text, 'elsewhere')
  })
})

async function run(containerId: string, command: readonly string[]): Promise<{ output: string }> {
  const { stdout } = await promisify(execFile)('docker', ['exec', containerId, ...command])
  return { output: stdout }
}

async function tree(t: Test, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await folder(t)
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), text)
  }
  return directory
}

void test('a site is looked for where sites are', async t => {
  const plain = async (files: Record<string, string>, wanted?: string) =>
    await findSite(await tree(t, files), wanted)
  t.match(await plain({ 'index.html': 'x' }), { kind: 'plain', path: '', hasNotFoundPage: false })
  t.match(await plain({ 'index.html': 'x', 'dist/index.html': 'x', 'dist/404.html': 'x' }), {
    kind: 'plain',
    path: 'dist',
    hasNotFoundPage: true
  })
  t.match(await plain({ '_site/index.html': 'x', 'out/index.html': 'x' }), { path: '_site' })
  t.match(await plain({ 'index.html': 'x', 'web/index.html': 'x' }, 'web'), { path: 'web' })
  t.match(await plain({ 'index.html': 'x', 'dist/index.html': 'x' }, '.'), { path: '' })
  t.match(
    await plain({ 'index.html': 'x', 'package.json': '{}' }),
    { kind: 'plain' },
    'a package without a build script'
  )
  await t.rejects(plain({ 'src/a.html': 'x', 'main.py': 'x' }), {
    status: 409,
    code: 'E_BUILD_SITE_MISSING',
    message:
      /looked for in public, dist, build, _site, out, the root; found were: main\.py, src\/; name the folder/
  })
  await t.rejects(plain({}), { message: /the directory is empty/ })
  await t.rejects(plain({ 'index.html': 'x' }, '../x'), { code: 'E_SOURCE_PATH' })
  await t.rejects(plain({ 'index.html': 'x', 'package.json': '{' }), { code: 'E_BUILD_PACKAGE' })

  const outside = await tree(t, { 'index.html': 'of the machine' })
  const directory = await tree(t, { 'readme.txt': 'x' })
  await symlink(outside, join(directory, 'public'))
  await symlink(join(outside, 'index.html'), join(directory, 'index.html'))
  await t.rejects(findSite(directory, undefined), { code: 'E_BUILD_SITE_MISSING' }, 'links are not followed')
  await t.rejects(findSite(directory, 'public'), { code: 'E_BUILD_SITE_MISSING' })
})

void test('the packages of a site are installed as its lock file says, before the rest of the source where that is enough', async t => {
  const built = async (files: Record<string, string>, fields: object = {}) => {
    const site = await findSite(
      await tree(t, { 'package.json': JSON.stringify({ scripts: { build: 'x' }, ...fields }), ...files }),
      undefined
    )
    return site.kind === 'built' ? site.install : site
  }
  t.match(await built({}), { install: /^npm install /, build: 'npm run build', files: ['package.json'] })
  t.match(await built({ 'package-lock.json': '{}', '.npmrc': '' }), {
    install: /^npm ci /,
    files: ['package.json', 'package-lock.json', '.npmrc']
  })
  t.match(await built({ 'pnpm-lock.yaml': '' }), {
    install: /^corepack pnpm install --frozen/,
    build: 'corepack pnpm run build'
  })
  t.match(await built({ 'yarn.lock': '' }), {
    install: /^corepack yarn install/,
    build: 'corepack yarn run build'
  })
  t.match(await built({}, { workspaces: ['a'] }), { files: [] })
  t.match(await built({}, { scripts: { build: 'x', postinstall: 'y' } }), { files: [] })
  t.match(await built({}, { dependencies: { a: 'file:./a' } }), { files: [] })
})
