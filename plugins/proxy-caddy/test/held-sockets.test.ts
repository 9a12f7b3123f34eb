import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { heldSockets } from '../../domains/test/held-sockets.js'
import { caddyLab } from './caddy-lab.js'

test('a WebSocket through Caddy stays open through switches, and from 2.7 on through changes of other domains', async t => {
  t.setTimeout(0)
  const { stdout } = await promisify(execFile)('caddy', ['version'])
  const [, minor] = /^v?2\.(\d+)/.exec(stdout) ?? []
  const { driver } = await caddyLab(t)
  await heldSockets(t, driver, { othersChange: Number(minor) >= 7 })
})
