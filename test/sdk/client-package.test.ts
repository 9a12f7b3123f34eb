/** What people install: the package is made, installed in an empty folder, type-checked, and runs against a platform. */
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { requireEngine } from '../../lab/engine.js'
import { openLab } from '../../plugins/deployments/test/deploy-lab.js'
import { packClient, plain } from '../../scripts/client/pack.js'
import { readSample } from '../../scripts/demo/sample-app.js'

const root = join(import.meta.dirname, '../..')
const folder = await mkdtemp(join(tmpdir(), 'busbar-client-user-'))
const { file, contents } = await packClient(root, folder)
await writeFile(join(folder, 'package.json'), '{"type":"module","private":true}')
await plain('npm', ['install', '--offline', '--no-audit', '--no-fund', file], folder)
await copyFile(join(root, 'examples/client/deploy.mjs'), join(folder, 'deploy.mjs'))

test('the package is installed from its tarball alone, and needs no other', async t => {
  const manifest = JSON.parse(
    await readFile(join(folder, 'node_modules/@busbar/client/package.json'), 'utf8')
  )
  t.match(manifest, { name: '@busbar/client', license: 'MIT', engines: { node: '>=20.19' } })
  t.notHas(manifest, { dependencies: {} })
})

test('the package has ESM, its types, the licence and the way to begin, and nothing else', t => {
  const other = contents.filter(path => !/^dist\/[a-z.-]+(\.d\.ts|\.js)$/.test(path))
  t.same(other.toSorted(), ['LICENSE', 'README.md', 'package.json'])
  t.ok(contents.includes('dist/index.js') && contents.includes('dist/index.d.ts'))
  t.end()
})

test('nothing of Node is loaded, so that a browser can load it', async t => {
  for (const path of contents.filter(path => path.endsWith('.js'))) {
    const text = await readFile(join(folder, 'node_modules/@busbar/client', path), 'utf8')
    const imports = [...text.matchAll(/^(?:import|export) .*? from '([^']+)'/gm)].map(([, from]) => from)
    t.same(
      imports.filter(from => from?.startsWith('./') !== true),
      [],
      path
    )
  }
})

test('a script of twenty lines deploys an application, follows its log and tidies up', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const script = await readFile(join(root, 'examples/client/deploy.mjs'), 'utf8')
  t.ok(script.trimEnd().split('\n').length <= 20, 'it is short')
  const { url } = await lab.git.createRepository('hello', await readSample('hello-node'))
  const admin = await lab.k.as.session()
  const { email, password } = await lab.k.user('admin')
  const told = await plain(process.execPath, ['deploy.mjs'], folder, {
    BUSBAR_URL: lab.k.url,
    BUSBAR_EMAIL: email,
    BUSBAR_PASSWORD: password,
    REPOSITORY: url
  })
  t.match(told, /^pending$|^building$/m)
  t.match(told, /Step \d+|FROM|npm|COPY/, 'the log of the build')
  t.match(told, /^success$/m)
  t.match(told, /^It answers at http:\/\/\S+$/m)
  const { body } = await admin.get('/api/projects')
  t.notOk(
    body.some(({ slug }: { slug: string }) => slug === 'try-it'),
    'the project is gone'
  )
})

test('what a newcomer writes in TypeScript agrees with the types', async t => {
  await writeFile(
    join(folder, 'newcomer.ts'),
    `import { ApiError, type Answer, createClient, NetworkError, type Schemas } from '@busbar/client'

const busbar = createClient({ url: 'http://127.0.0.1:8080', token: 'x' })
const project: Schemas['Project'] = await busbar.operations.CreateProject({ body: { name: 'a', slug: 'a' } })
const log: Answer<'GET /api/audit-logs'> = await busbar.get('/api/audit-logs', { query: { limit: 5, offset: 0 } })
const ended = await busbar.deployments.wait('id', { timeoutMs: 1, onLog: line => console.log(line.ts, line.msg) })
const status: 'pending' | 'building' | 'deploying' | 'success' | 'failed' = ended.status
// @ts-expect-error: there is no such status
if (ended.status === 'done') console.log(project, log, status)
// @ts-expect-error: the slug is required
await busbar.projects.create({ name: 'a' }).catch(error => error instanceof ApiError || error instanceof NetworkError)
`
  )
  // DOM alone, so that the types ask for nothing of Node.
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        module: 'NodeNext',
        target: 'ES2022',
        lib: ['ES2023', 'DOM'],
        types: [],
        strict: true,
        noEmit: true,
        skipLibCheck: false
      },
      include: ['newcomer.ts']
    })
  )
  const compiler = join(root, 'node_modules/.bin/tsc')
  t.equal(
    await plain(compiler, ['-p', folder], folder).catch((error: { stdout: string }) => error.stdout),
    ''
  )
})

test('the folder is taken away', async () => {
  await rm(folder, { recursive: true, force: true })
})
