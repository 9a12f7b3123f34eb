import { pipeline } from 'node:stream/promises'
import { containerRuntime } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { type DatabaseEngine, type EngineCommand, type EngineDatabase, restoredMark } from '../api.js'
import { containerOf, createDatabase, type Lab, type Made, runIn } from './lab.js'

/** One kind of servers, with what has to be said in its language. */
export interface EngineCase {
  readonly engine: DatabaseEngine
  /** What a database of it is created with. */
  readonly body: { readonly type: string; readonly version: string; readonly credentials?: object }
  /** Puts in something of each kind that it has: three rows or keys, and what belongs to no database. */
  fill(database: EngineDatabase): readonly EngineCommand[]
  /** What is asked for, and what it says where all of it is there. */
  readonly asks: (database: EngineDatabase) => ReadonlyArray<{
    readonly command: EngineCommand
    readonly says: string
  }>
  /** The least that the count is, after `fill`. */
  readonly rows: number
}

const never = new AbortController().signal

/** What every engine has to do, with real servers. */
export async function engineContract(t: Test, lab: Lab, one: EngineCase): Promise<void> {
  const { engine, body } = one
  const { dump } = engine
  if (dump === null) throw new Error('an engine of this contract has dumps')
  const { k, ann } = lab
  const runtime = k.service(containerRuntime)
  const seen = async (made: Made): Promise<EngineDatabase> => {
    const { body: shown } = await ann.get(made.path)
    const { body: revealed } = await ann.get(`${made.path}/credentials/reveal`)
    return {
      version: shown.version,
      credentials: revealed.credentials,
      port: shown.internal_port,
      dataDir: shown.data_dir
    }
  }
  const said = async (made: Made, { argv, env }: EngineCommand) => (await runIn(k, made.id, argv, env)).trim()
  const countOf = async (made: Made) =>
    (await said(made, dump.count(await seen(made))))
      .split('\n')
      .filter(line => /^\d+$/.test(line))
      .reduce((sum, line) => sum + Number(line), 0)

  const first = await createDatabase(lab, body)
  const database = await seen(first)

  await t.test('it answers, and its secrets are no arguments of any program', async t => {
    const secrets = Object.entries(database.credentials)
      .filter(([key]) => key.includes('password'))
      .map(([, value]) => value)
    t.ok(secrets.length > 0)
    const commands = [
      engine.ready(database),
      dump.databases(database),
      dump.dump(database, { kind: 'all' }),
      dump.restore(database, { kind: 'all' }),
      dump.count(database)
    ].filter(command => command !== null)
    for (const { argv } of commands) t.notOk(argv.some(word => secrets.some(secret => word.includes(secret))))
    const { command, entrypoint } = engine.container(database, { isEmpty: false })
    for (const word of [...(command ?? []), ...(entrypoint ?? [])])
      t.notOk(secrets.some(secret => word.includes(secret)))
    const ready = engine.ready(database)
    if (ready !== null) t.resolves(said(first, ready))
    const wrong = engine.ready({
      ...database,
      credentials: Object.fromEntries(Object.entries(database.credentials).map(([key]) => [key, 'wrong1']))
    })
    if (wrong !== null) await t.rejects(said(first, wrong), 'a wrong password is no answer')
  })

  await t.test(
    'everything in it is dumped and restored into an empty one, with what belongs to no database',
    async t => {
      for (const command of one.fill(database)) await said(first, command)
      for (const { command, says } of one.asks(database)) t.equal(await said(first, command), says)
      const rows = await countOf(first)
      t.ok(rows >= one.rows, `${rows}`)

      const second = await createDatabase(lab, { ...body, name: 'copy' })
      const target = await seen(second)
      const from = await runtime.openProgram(
        await containerOf(k, first.id),
        dump.dump(database, { kind: 'all' }).argv,
        { env: dump.dump(database, { kind: 'all' }).env, signal: never }
      )
      from.input.end()
      const chunks: Buffer[] = []
      for await (const chunk of from.output) chunks.push(chunk as Buffer)
      t.match(await from.ended, { exitCode: 0 })
      const whole = Buffer.concat(chunks)
      t.ok(whole.length > 0)

      // As an empty server is made: with the credentials of the one that was dumped.
      const side = await emptyServer(second, database)
      const restore = async (server: string, content: Buffer) => {
        const program = await runtime.openProgram(server, dump.restore(database, { kind: 'all' }).argv, {
          env: dump.restore(database, { kind: 'all' }).env,
          signal: never
        })
        let output = ''
        const [, end] = await Promise.all([
          (async () => {
            for await (const chunk of program.output) output = (output + String(chunk)).slice(-500)
          })(),
          program.ended,
          pipeline([content], program.input).catch(() => {})
        ])
        return { ...end, isWhole: output.trimEnd().endsWith(restoredMark) }
      }
      const cut = await restore(side, whole.subarray(0, Math.floor(whole.length * 0.5)))
      t.notOk(cut.exitCode === 0 && cut.isWhole, 'what is cut off is not taken for whole')
      await runtime.remove(side)
      const fresh = await emptyServer(second, database)
      t.match(await restore(fresh, whole), { exitCode: 0, isWhole: true })
      for (const { command, says } of one.asks(database)) {
        const lines: string[] = []
        await runtime.exec(fresh, command.argv, {
          env: command.env,
          onLine: ({ text }) => {
            lines.push(text)
          },
          signal: never
        })
        t.equal(lines.join('\n').trim(), says)
      }
      await runtime.remove(fresh)
      t.ok(target.port)
    }
  )

  /** A server without what it usually begins with, in a container without a volume. */
  async function emptyServer(made: Made, of: EngineDatabase): Promise<string> {
    const state = await runtime.inspect(await containerOf(k, made.id))
    if (state === undefined) throw new Error('there is no container')
    const network = await runtime.ensureBuildNetwork(lab.projectId)
    const { env, command, entrypoint, stopSignal } = engine.container(of, { isEmpty: true })
    const id = await runtime.create({
      name: `${made.slug}-contract`,
      image: state.image,
      owner: { projectId: lab.projectId, databaseId: made.id },
      network,
      env,
      ...(command !== undefined && { command }),
      ...(entrypoint !== undefined && { entrypoint }),
      ...(stopSignal !== undefined && { stopSignal }),
      cpuLimit: 0,
      memoryLimit: 0,
      caps: 'standard',
      readonlyRootfs: false
    })
    await runtime.start(id)
    const ready = engine.ready(of)
    if (ready === null) return id
    await until(
      async () =>
        (await runtime.exec(id, ready.argv, { env: ready.env, onLine: () => {}, signal: never })) === 0,
      'the empty server to answer',
      120_000
    )
    return id
  }
}
