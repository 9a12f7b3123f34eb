import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { until } from 'busbar/sdk/testing'
import { engineTest, type Lab, sharedLab } from './lab.js'

const newProject = sharedLab()

async function started(lab: Lab, name: string): Promise<string> {
  const network = await lab.runtime.ensureNetwork({ id: lab.projectId, slug: lab.projectId.slice(0, 8) })
  const id = await lab.runtime.create(
    lab.spec(name, network, {
      command: ['sh', '-c', 'trap "exit 0" TERM; trap "exit 7" INT; while true; do sleep 0.1; done'],
      stopSignal: 'SIGINT'
    })
  )
  await lab.runtime.start(id)
  return id
}

const never = new AbortController().signal

async function digestOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of stream) hash.update(piece)
  return hash.digest('hex')
}

engineTest(
  'bytes go through a program as they are, and the end of its input is the end of what it reads',
  async t => {
    const lab = newProject()
    const id = await started(lab, 'bytes')
    const bytes = randomBytes(8 * 2 ** 20)
    const program = await lab.runtime.openProgram(id, ['cat'], { signal: never })
    const [digest] = await Promise.all([
      digestOf(program.output),
      pipeline(Readable.from(bytes, { objectMode: false }), program.input)
    ])
    t.equal(digest, createHash('sha256').update(bytes).digest('hex'))
    t.same(await program.ended, { exitCode: 0, errors: '' })
  }
)

engineTest('a program says how it ended, with its exit code and the last of its errors', async t => {
  const lab = newProject()
  const id = await started(lab, 'errors')
  const program = await lab.runtime.openProgram(
    id,
    ['sh', '-c', 'echo "$OWN as $(id -u)" >&2; echo out; exit 3'],
    { env: { OWN: 'secret' }, user: '1234', signal: never }
  )
  program.output.resume()
  t.same(await program.ended, { exitCode: 3, errors: 'secret as 1234' })
})

engineTest('a program that is given up ends, with all that it has started', async t => {
  const lab = newProject()
  const id = await started(lab, 'abort')
  const end = new AbortController()
  const program = await lab.runtime.openProgram(id, ['sh', '-c', 'sleep 4711 | cat; true'], {
    signal: end.signal
  })
  const sleepers = async (): Promise<number> => {
    let count = 0
    await lab.runtime.exec(id, ['ps'], {
      onLine: ({ text }) => {
        if (text.includes('sleep 4711')) count += 1
      },
      signal: never
    })
    return count
  }
  await until(async () => (await sleepers()) > 0, 'the program to run')
  end.abort(new Error('given up'))
  await t.rejects(program.ended, { message: 'given up' })
  await until(async () => (await sleepers()) === 0, 'the end of what it has started')
})

engineTest('a container is asked to end by the signal that it was made with', async t => {
  const lab = newProject()
  const id = await started(lab, 'signal')
  await lab.runtime.stop(id, 20)
  t.equal((await lab.runtime.inspect(id))?.exitCode, 7)
})
