import type { LogBatch, LogLine } from 'busbar/api/containers'
import { settingsFrom } from 'busbar/sdk/testing'
import { test } from 'tap'
import { startNewerEngine } from '../../../lab/newer-engine.js'
import { EngineClient } from '../engine-client.js'
import { EngineLogs } from '../logs/engine-logs.js'
import { settings } from '../settings.js'

const { signal } = new AbortController()
/** Of which the engine keeps all: 25 of 30 MB. */
const count = 150_000

test('a burst that fills several files of the log of a newer engine is followed whole, in order and each line once', async t => {
  const newer = await startNewerEngine(t, ['busybox:lab'])
  if (newer === undefined) return
  const container = await newer.docker.createContainer({
    Image: 'busybox:lab',
    Cmd: [
      'sh',
      '-c',
      `sleep 0.5; i=0; while [ $i -lt ${count} ]; do echo "line $i ${'x'.repeat(80)}"; i=$((i+1)); done`
    ],
    HostConfig: {
      NetworkMode: 'none',
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } }
    }
  })
  await container.start()
  const engine = new EngineClient(settingsFrom(settings, newer.environment))
  const { Version: version } = await newer.docker.version()
  const logs = new EngineLogs(engine, { read: async () => ({ version }) })
  const texts: string[] = []
  let places = 0
  const take = ({ lines }: LogBatch): void => {
    places++
    texts.push(...lines.map(({ text }: LogLine) => text))
  }
  for await (const batch of logs.read(
    { containerId: container.id, hasTerminal: false },
    { follow: true, signal }
  ))
    take(batch)
  t.equal(texts.length, count)
  t.same(
    texts
      .flatMap((text, at) => (text.startsWith(`line ${at} `) ? [] : [`${text.slice(0, 20)} at ${at}`]))
      .slice(0, 5),
    []
  )
  t.ok(places > 1)
})
