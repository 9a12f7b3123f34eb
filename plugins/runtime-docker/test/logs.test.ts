import { randomBytes } from 'node:crypto'
import type { LogBatch, LogLine } from 'busbar/api/containers'
import { settingsFrom, until } from 'busbar/sdk/testing'
import { EngineClient } from '../engine-client.js'
import { containerLogs } from '../logs/container-logs.js'
import { FollowRenewal } from '../logs/follow-renewal.js'
import { settings } from '../settings.js'
import { engineTest, type Lab, sharedLab } from './lab.js'

const newProject = sharedLab()
const { signal } = new AbortController()

async function started(lab: Lab, name: string, script: string, changes: object = {}): Promise<string> {
  const network = await lab.runtime.ensureNetwork({ id: lab.projectId, slug: lab.projectId.slice(0, 8) })
  const id = await lab.runtime.create(
    lab.spec(name, network, { command: ['sh', '-c', script], restarts: false, ...changes })
  )
  await lab.runtime.start(id)
  return id
}

/** Writes `count` lines of this length as fast as it can. */
const burst = (count: number, length = 80): string =>
  `i=0; while [ $i -lt ${count} ]; do echo "line $i ${'x'.repeat(length)}"; i=$((i+1)); done`

const numberOf = ({ text }: LogLine): number => Number(/^line (\d+) /.exec(text)?.[1] ?? Number.NaN)

async function all(batches: AsyncIterable<LogBatch>): Promise<LogLine[]> {
  const found: LogLine[] = []
  for await (const { lines } of batches) found.push(...lines)
  return found
}

/** Where the numbers of the lines do not go on as they should. */
const jumps = (lines: readonly LogLine[]): string[] =>
  lines.map(numberOf).flatMap((n, at, numbers) => {
    const before = at === 0 ? -1 : (numbers[at - 1] ?? -1)
    return n === before + 1 ? [] : [`${n} after ${before}`]
  })

engineTest(
  'a burst of 100 000 lines is followed whole, in order and each line once, across files of the log',
  async t => {
    const lab = newProject()
    const id = await started(lab, 'burst', `sleep 0.5; ${burst(100_000)}`)
    const lines = await all(lab.runtime.logs(id, { follow: true, signal }))
    t.same(jumps(lines).slice(0, 5), [])
    t.equal(lines.length, 100_000)
  }
)

engineTest('where a file of the log is begun at an easy pace, no line comes twice', async t => {
  const lab = newProject()
  // A file of the log has room for some 20 of these.
  const text = 'x'.repeat(8000)
  const id = await started(
    lab,
    'files',
    `i=0; while [ $i -lt 60 ]; do j=0; while [ $j -lt 50 ]; do echo "line $((i*50+j)) ${text}"; j=$((j+1)); done; i=$((i+1)); sleep 0.05; done`
  )
  const lines = await all(lab.runtime.logs(id, { follow: true, signal }))
  t.same(jumps(lines).slice(0, 5), [])
  t.equal(lines.length, 3000)
})

engineTest('reading goes on behind any place, whoever has come there', async t => {
  const lab = newProject()
  const id = await started(
    lab,
    'places',
    `${burst(300, 5)}; head -c 40000 /dev/zero | tr '\\0' a; echo; i=0; while [ $i -lt 50 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done`
  )
  await until(async () => (await lab.runtime.inspect(id))?.status === 'exited', 'its end')
  const whole = await all(lab.runtime.logs(id, { signal }))
  t.equal(whole.length, 300 + 3 + 100)
  t.same(
    whole
      .filter(({ text }) => text.startsWith('aaa'))
      .map(({ text, continues = false }) => [text.length, continues]),
    [
      [16_384, true],
      [16_384, true],
      [7232, false]
    ]
  )
  t.equal(new Set(whole.filter(({ text }) => text.startsWith('aaa')).map(({ time }) => time)).size, 1)
  // As if the reader had died behind each of the lines.
  const places: string[] = []
  for await (const { places: found } of placesOf(lab, id)) places.push(...found)
  t.equal(places.length, whole.length)
  for (const [index, after] of places.entries()) {
    if (index % 7 !== 0 && index < 290) continue
    const rest = await all(lab.runtime.logs(id, { after, signal }))
    const expected = whole.slice(index + 1)
    if (JSON.stringify(rest) !== JSON.stringify(expected))
      t.same(rest.slice(0, 3), expected.slice(0, 3), `behind line ${index}`)
  }
  t.same(await all(lab.runtime.logs(id, { after: places.at(-1) ?? '', follow: true, signal })), [])
})

/** The place behind each line, by reading one more each time. */
async function* placesOf(lab: Lab, id: string): AsyncGenerator<{ places: string[] }> {
  const { placeBehind, placeText } = await import('../logs/log-place.js')
  let place: ReturnType<typeof placeBehind>
  for await (const { lines } of lab.runtime.logs(id, { signal })) {
    const places = lines.map(line => {
      place = placeBehind(place, [line])
      return place === undefined ? '' : placeText(place)
    })
    yield { places }
  }
}

engineTest('a reader that stops while much is written goes on where it was', async t => {
  const lab = newProject()
  const id = await started(lab, 'stops', `sleep 0.3; ${burst(60_000)}`)
  const lines: LogLine[] = []
  let after: string | undefined
  for (let round = 0; ; round++) {
    let isOver = true
    for await (const batch of lab.runtime.logs(id, {
      follow: true,
      signal,
      ...(after === undefined ? {} : { after })
    })) {
      lines.push(...batch.lines)
      after = batch.place
      t.notOk(batch.isGap)
      if (lines.length > (round + 1) * 9000) {
        isOver = false
        break
      }
    }
    if (isOver) break
  }
  t.same(jumps(lines).slice(0, 5), [])
  t.equal(lines.length, 60_000)
})

engineTest('output goes on behind its place when the container has been started again', async t => {
  const lab = newProject()
  const id = await started(lab, 'again', 'printf "line 0 x\\nlast words"; sleep 0.2')
  const first: LogBatch[] = []
  for await (const batch of lab.runtime.logs(id, { follow: true, signal })) first.push(batch)
  t.same(
    first.flatMap(({ lines }) => lines).map(({ text }) => text),
    ['line 0 x', 'last words']
  )
  await lab.runtime.start(id)
  const second = await all(lab.runtime.logs(id, { follow: true, signal, after: first.at(-1)?.place ?? '' }))
  t.same(
    second.map(({ text }) => text),
    ['line 0 x', 'last words']
  )
})

engineTest('what was thrown away before it was read is said to be missing', async t => {
  const lab = newProject()
  const id = await started(
    lab,
    'gap',
    `echo "line 0 x"; while [ ! -e /tmp/go ]; do sleep 0.05; done; for n in 1 2 3 4 5 6 7 8 9; do head -c 5000000 /dev/zero | tr '\\0' c; echo; done`
  )
  let after = ''
  for await (const { place } of lab.runtime.logs(id, { follow: true, signal })) {
    after = place
    break
  }
  await lab.runtime.exec(id, ['touch', '/tmp/go'], { onLine: () => {}, signal })
  await until(async () => (await lab.runtime.inspect(id))?.status === 'exited', 'its end')
  const batches: LogBatch[] = []
  for await (const batch of lab.runtime.logs(id, { after, signal })) batches.push(batch)
  t.ok(batches.length > 1)
  t.same(
    batches.flatMap(({ isGap }, index) => (isGap === true ? [index] : [])),
    [0]
  )
})

engineTest('a line of 10 MB comes in pieces of its own time, and none is lost or comes twice', async t => {
  const lab = newProject()
  const id = await started(lab, 'long', `echo begin; head -c 10000000 /dev/zero | tr '\\0' b; echo; echo end`)
  let longest = 0
  const lines: LogLine[] = []
  for await (const batch of lab.runtime.logs(id, { follow: true, signal })) {
    longest = Math.max(
      longest,
      batch.lines.reduce((sum, { text }) => sum + text.length, 0)
    )
    lines.push(...batch.lines)
  }
  t.equal(lines[0]?.text, 'begin')
  t.equal(lines.at(-1)?.text, 'end')
  const pieces = lines.slice(1, -1)
  t.equal(
    pieces.reduce((sum, { text }) => sum + text.length, 0),
    10_000_000
  )
  t.ok(pieces.every(({ text }) => text.length <= 16_384))
  t.equal(pieces.filter(({ continues }) => continues !== true).length, 1)
  t.ok(longest < 1024 * 1024, `${longest} characters at once`)
})

engineTest('binary output, NUL and colours come as text that can be shown and stored', async t => {
  const lab = newProject()
  const bytes = randomBytes(20_000)
  const escaped = [...bytes].map(byte => `\\${byte.toString(8).padStart(3, '0')}`)
  const parts = Array.from(
    { length: 20 },
    (_, n) => `printf '${escaped.slice(n * 1000, (n + 1) * 1000).join('')}'`
  )
  const id = await started(
    lab,
    'binary',
    `printf 'a\\000b\\n\\033[31mred\\033[0m\\n10%%\\r50%%\\r100%%\\n\\n'; ${parts.join('; ')}; echo; echo after`
  )
  const lines = await all(lab.runtime.logs(id, { follow: true, signal }))
  t.same(
    lines.slice(0, 4).map(({ text }) => text),
    ['ab', '\u001b[31mred\u001b[0m', '100%', '']
  )
  t.equal(lines.at(-1)?.text, 'after')
  for (const { text } of lines) t.notMatch(text, /[\u0000-\u0008\u000a-\u001a]/)
})

engineTest('a follow that begins anew again and again gives each line once', async t => {
  const lab = newProject()
  const id = await started(
    lab,
    'renewed',
    `i=0; while [ $i -lt 300 ]; do echo "line $i x"; i=$((i+1)); sleep 0.01; done`
  )
  const engine = new EngineClient(settingsFrom(settings, process.env))
  const renewal = new FollowRenewal(150, 50)
  const container = { containerId: id, hasTerminal: false }
  const lines = await all(containerLogs(engine, container, { follow: true, signal }, renewal))
  t.same(jumps(lines).slice(0, 5), [])
  t.equal(lines.length, 300)
})
