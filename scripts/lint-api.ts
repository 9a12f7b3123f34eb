/**
 * `npm run lint:api`: judges the descriptions of the API and of its channels by the recommended rules of Redocly and Spectral, and looks how
 * many lines of types openapi-typescript makes of it. Nothing is started; the tools have a folder and a lock of their own.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeBuiltInChannels, describeBuiltIns } from './client/describe.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const tools = join(root, 'scripts/lint-api')
/** Of 17 800 lines most were the same answers, written out for each operation. What is left grows with the operations. */
const mostLinesPerOperation = 86

interface Description {
  readonly paths: Readonly<Record<string, object>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
}

const work = await mkdtemp(join(tmpdir(), 'busbar-lint-api-'))
let hasFailed = false
try {
  const description: Description = await describeBuiltIns(root)
  await writeFile(join(work, 'openapi.json'), JSON.stringify(description, null, 2))
  await writeFile(join(work, 'asyncapi.json'), JSON.stringify(await describeBuiltInChannels(root), null, 2))
  // By another name than the one that openapi-typescript looks for: it would take rules for its own.
  await copyFile(join(tools, 'redocly.yaml'), join(work, 'rules.yaml'))
  await copyFile(join(tools, '.redocly.lint-ignore.yaml'), join(work, '.redocly.lint-ignore.yaml'))
  for (const rules of ['spectral.yaml', 'spectral-channels.yaml'])
    await copyFile(join(tools, rules), join(work, rules))
  await tool('redocly', ['lint', 'openapi.json', '--config', 'rules.yaml', '--max-problems', '1000'])
  await tool('spectral', ['lint', 'openapi.json', '--ruleset', 'spectral.yaml', '--fail-severity', 'hint'])
  const channels = ['asyncapi.json', '--ruleset', 'spectral-channels.yaml', '--fail-severity', 'hint']
  await tool('spectral', ['lint', ...channels])
  if (await tool('openapi-typescript', ['openapi.json', '--output', 'types.ts']))
    judgeTypes(await readFile(join(work, 'types.ts'), 'utf8'), description)
} finally {
  await rm(work, { recursive: true, force: true })
}
// Plugins may have begun something as they were loaded.
process.exit(hasFailed ? 1 : 0)

/** Runs one of the tools where the description is; what it says is shown, a refusal remembered. */
async function tool(name: string, args: readonly string[]): Promise<boolean> {
  const child = spawn(join(tools, 'node_modules/.bin', name), args, {
    cwd: work,
    stdio: 'inherit',
    // Neither asks for a newer version of itself, nor tells anybody that it ran.
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code === 0) return true
  hasFailed = true
  console.error(`${name} finds fault with the description`)
  return false
}

function judgeTypes(types: string, { paths, components }: Description): void {
  const operations = Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0)
  const lines = types.split('\n').length
  const most = operations * mostLinesPerOperation
  console.log(`openapi-typescript: ${lines} lines for ${operations} operations, of at most ${most}`)
  const unnamed = Object.keys(components.schemas).filter(name => !types.includes(`        ${name}: `))
  if (lines <= most && unnamed.length === 0) return
  hasFailed = true
  console.error(`the types are too long, or lack names: ${unnamed.join(', ')}`)
}
