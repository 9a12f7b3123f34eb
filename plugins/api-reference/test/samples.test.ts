/** The samples are run as they stand on the page, by the programs they are for. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

const run = promisify(execFile)
const script = async (name: string): Promise<any> =>
  await import(new URL(`../page/${name}`, import.meta.url).href)
const { operationsOf } = await script('description.js')
const { curlOf, javascriptOf, pythonOf, channelProgram } = await script('samples.js')

interface Given {
  readonly path: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly header: Readonly<Record<string, string>>
  readonly body: string | undefined
}
const given = (more: Partial<Given> = {}): Given => ({
  path: {},
  query: {},
  header: {},
  body: undefined,
  ...more
})

/** The name of a parameter that a shell, JavaScript and Python would each take for something else. */
const hostileName = `$(echo ran >&2)\`echo ran >&2\`"'&=#\\`

/** A plugin of a third party, whose operations the client has no names for. */
const tailer = {
  'plugin.json': JSON.stringify({
    id: 'tailer',
    name: 'Tailer',
    version: '1.0.0',
    sdk: '^0.1.0',
    description: 'Streams two lines.'
  }),
  'index.ts': `import { allow, definePlugin, maybe, object, sse, Type } from 'busbar/sdk'
async function* lines() {
  yield { data: 'first' }
  yield { data: 'second' }
}
export default definePlugin({
  id: 'tailer',
  routes(route) {
    route({
      method: 'GET',
      url: '/api/x/tailer/tail',
      summary: 'Tail',
      produces: 'text/event-stream',
      access: allow.token('read', { project: 'none' }),
      handler: () => sse(lines())
    })
    route({
      method: 'GET',
      url: '/api/x/tailer/odd',
      summary: 'Odd',
      access: allow.token('read', { project: 'none' }),
      schema: { query: object({ [${JSON.stringify(hostileName)}]: Type.String() }), response: { 200: object({ said: maybe(Type.String()) }) } },
      handler: ({ query }) => ({ said: query[${JSON.stringify(hostileName)}] })
    })
  }
})
`
}

let k: TestKernel
let directory: string
let environment: Record<string, string>
let operations: any[]
const client = new URL('../../../sdk/client/index.ts', import.meta.url).href

/** Runs the sample of a language, and returns what it prints. */
const programs = {
  curl: async (operation: object, values: Given) =>
    (await run('bash', ['-c', curlOf(operation, values)], { env: environment })).stdout,
  JavaScript: async (operation: object, values: Given) =>
    await runJavaScript(javascriptOf(operation, values)),
  Python: async (operation: object, values: Given) => {
    const file = join(directory, 'sample.py')
    await writeFile(file, pythonOf(operation, values))
    return (await run('python3', [file], { env: environment })).stdout
  }
}
async function runJavaScript(text: string): Promise<string> {
  const file = join(import.meta.dirname, `sample-${process.pid}.mjs`)
  await writeFile(file, text.replace("'@busbar/client'", JSON.stringify(client)))
  try {
    return (
      await run(process.execPath, ['--import=tsx', '--conditions=busbar-source', file], { env: environment })
    ).stdout
  } finally {
    await rm(file)
  }
}
const operation = (id: string): object =>
  operations.find(one => one.id === id || (one.path === id && one.method === 'get'))

test('a platform to run the samples against', async () => {
  directory = await mkdtemp(join(tmpdir(), 'busbar-samples-'))
  const folder = join(directory, 'tailer')
  await mkdir(folder)
  for (const [name, text] of Object.entries(tailer)) await writeFile(join(folder, name), text)
  k = await createTestKernel({ plugins: [folder] })
  const admin = await k.as.session('admin')
  const token = await admin.post('/api/tokens', { name: 'samples', scopes: ['write'] })
  const cookies = String(admin.credential.cookie)
  const cookie = (name: string) => new RegExp(`${name}=([^;]+)`).exec(cookies)?.[1] ?? ''
  environment = {
    PATH: String(process.env.PATH),
    BUSBAR_URL: k.url,
    BUSBAR_TOKEN: token.body.token,
    SESSION: cookie('token'),
    CSRF: cookie('csrf_token'),
    BUSBAR_EMAIL: 'admin@example.com',
    BUSBAR_PASSWORD: 'correct horse battery'
  }
  operations = operationsOf((await k.as.anonymous().get('/api/openapi.json')).body)
})

for (const [language, program] of Object.entries(programs)) {
  test(`${language}: what anybody may ask, what a token makes and reads, a stream, and what a session takes away`, async t => {
    t.match(await program(operation('GetVersion'), given()), /0\.1\.0/)
    // Names that a shell, JavaScript and Python would each take for something else.
    const name = `It's "$HOME" \`id\` \\n ${language}`
    const slug = language.toLowerCase()
    const body = JSON.stringify({ name, slug })
    t.match(
      await program(
        operation('CreateProject'),
        given({ body, header: { 'Idempotency-Key': `key-${slug}` } })
      ),
      new RegExp(slug)
    )
    const projects = (await (await k.as.session('admin')).get('/api/projects')).body
    const project = projects.find((one: { slug: string }) => one.slug === slug)
    t.equal(project.name, name, 'as it was written')
    const path = { projectId: project.id }
    t.match(await program(operation('GetProject'), given({ path })), new RegExp(project.id))
    t.match(await program(operation('/api/projects'), given({ query: { limit: '1' } })), /slug/)
    t.match(await program(operation('/api/x/tailer/tail'), given()), /first[\s\S]*second/)
    t.match(
      await program(operation('/api/x/tailer/odd'), given({ query: { [hostileName]: 'heard' } })),
      /said['"]?: ?['"]heard/,
      'the name that a plugin has chosen is text, too'
    )
    await program(operation('DeleteProject'), given({ path }))
    const refused: any = await program(operation('GetProject'), given({ path })).then(
      () => undefined,
      error => error
    )
    t.ok(refused, 'what is refused ends the program with a failure')
    t.match(refused.stdout + refused.stderr, /E_NOT_FOUND|not found/, 'and says why')
    k.resetRateLimits()
  })
}

test('a program hears the channel that it shows', async t => {
  const hearing = runJavaScript(
    channelProgram('platform').replace('console.log(event, data)', 'console.log(event, data); socket.close()')
  )
  const speaking = setInterval(() => k.publish('platform', 'update', { updating: true }), 50)
  t.teardown(() => clearInterval(speaking))
  t.match(await hearing, /update \{ updating: true \}/)
})

test('the platform stops', async () => {
  await k.close()
  await rm(directory, { recursive: true, force: true })
})
