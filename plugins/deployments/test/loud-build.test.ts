import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { heldBytes } from '../../../lab/garbage.js'
import { engine, openLab, sample } from './deploy-lab.js'

const loud = `FROM node:20
RUN i=0; yes 'this line is one of a million, and nobody will ever read it' | head -n 1000000
RUN i=0; yes '' | head -n 3000000
RUN head -c 5000000 /dev/urandom; head -c 5000000 /dev/zero; echo; echo the end of the noise
WORKDIR /app
COPY . .
CMD ["node", "server.js"]
`

test('a build that prints a million lines, three million empty ones and binary', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('loud', 'ok', loud))
  const { id } = await web.deploy()

  let answers = 0
  let slowest = 0
  let mostMemory = 0
  const before = heldBytes()
  let isOver = false
  const asking = (async () => {
    while (!isOver) {
      const askedAt = performance.now()
      const { status, body } = await admin.get(web.path)
      slowest = Math.max(slowest, performance.now() - askedAt)
      if (status === 200 && body.id === web.id) answers++
      // What a busy machine has not collected yet is not held.
      if (answers % 20 === 1) mostMemory = Math.max(mostMemory, heldBytes())
      await sleep(20)
    }
  })()
  const ended = await web.ended(id, 240_000)
  isOver = true
  await asking

  t.match(ended, { status: 'success' })
  const lines = ended.build_logs
    .trimEnd()
    .split('\n')
    .map((line: string) => JSON.parse(line))
  t.ok(ended.build_logs.length < 1.2 * 2 ** 20, `${ended.build_logs.length} characters are kept`)
  const note = lines.find(
    ({ level, msg }: { level: string; msg: string }) => level === 'warning' && / lines \(/.test(msg)
  )
  const [, leftOut] =
    /^(\d+) lines \(.* MiB\) were left out here: a build log keeps its beginning and its end, 1 MiB in all$/.exec(
      note?.msg ?? ''
    ) ?? []
  t.ok(Number(leftOut) + lines.length > 4_000_000, `every line is there or counted: ${leftOut} were left out`)
  t.ok(
    lines.some(({ msg }: { msg: string }) => msg === 'the end of the noise'),
    'the end is there'
  )
  t.ok(
    lines.every(({ msg }: { msg: string }) => !/[\u0000-\u0008]/.test(msg)),
    'nothing that a terminal would not show'
  )
  t.comment(
    `${answers} answers meanwhile, the slowest after ${Math.round(slowest)} ms, ${Math.round((mostMemory - before) / 2 ** 20)} MiB more`
  )
  t.ok(answers > 20, `the platform went on answering: ${answers} times`)
  t.ok(mostMemory - before < 100 * 2 ** 20, `${Math.round((mostMemory - before) / 2 ** 20)} MiB more`)
  t.same(await readdir(join(lab.k.state.directory, 'data/builds/work')), [], 'no source is left')
  t.same(
    (await engine.listContainers({ all: true })).filter(({ Command }) =>
      Command.includes('one of a million')
    ),
    []
  )
})
