/** A platform in a process of its own for the fuzzer, which must see it end: `rig.ts` starts and asks it. */

import { randomUUID } from 'node:crypto'
import { directAddresses } from 'busbar/api/direct'
import { allow, definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { catchUncaughtErrors } from '../../core/frames/uncaught-errors.js'
import type { Question, Report } from './rig.js'

const tell = (report: Report): void => {
  process.send?.(report)
}
const echo = definePlugin({
  id: 'echo',
  sockets(socket) {
    socket({
      url: '/api/ws/echo',
      summary: 'Echo',
      access: allow.token('read', { project: 'none' }),
      handler: async duplex => {
        for await (const message of duplex.messages) await duplex.send(String(message))
      }
    })
  }
})

const uncaughtErrors = catchUncaughtErrors(error => {
  tell({ kind: 'fault', what: `the process would have ended: ${String(error)}` })
  process.exit(1)
})
const k = await createTestKernel({
  inline: [{ manifest: { id: 'echo' }, definition: echo }],
  environment: {
    DOCKER_HOST: 'unix:///nowhere.sock',
    MAX_WEBSOCKET_CONNS_PER_USER: '1000',
    BUSBAR_DIRECT_PORTS: '27100-27150'
  },
  onLog: line => {
    const { level, msg, err, plugin } = JSON.parse(line) as {
      level: number
      msg: string
      plugin?: string
      err?: { stack?: string }
    }
    if (level >= 50) tell({ kind: 'fault', what: `${msg} (${plugin ?? 'kernel'}): ${err?.stack ?? ''}` })
  }
})
uncaughtErrors.reportTo(k.kernel)
// The limits of requests are not what is tried here.
setInterval(() => {
  k.resetRateLimits()
}, 20).unref()

const admin = await k.as.session()
const token = await k.as.token('read')
const project = await admin.post('/api/projects', { name: 'Fuzz', slug: 'fuzz' })
const application = await admin.post(`/api/projects/${project.body.id}/applications`, {
  name: 'fuzz',
  type: 'image',
  build_type: 'image',
  source_image: 'busybox:lab'
})
const addresses = k.service(directAddresses)
const { url } = await addresses.open(application.body.id)
await addresses.switchTo(application.body.id, {
  deploymentId: randomUUID(),
  containerId: 'fuzz',
  host: '127.0.0.1',
  port: Number(process.argv[2])
})

process.on('message', (question: Question) => {
  if (question === 'stop') void k.close().finally(() => process.exit(0))
  if (question === 'usage') {
    globalThis.gc?.()
    const handles: Record<string, number> = {}
    for (const name of process.getActiveResourcesInfo()) handles[name] = (handles[name] ?? 0) + 1
    tell({ kind: 'usage', heapMb: Math.round(process.memoryUsage().heapUsed / 1024 / 1024), handles })
  }
})
process.on('disconnect', () => process.exit(0))
tell({
  kind: 'ready',
  platform: k.port,
  address: { host: new URL(url).hostname, port: Number(new URL(url).port) },
  credential: `Authorization: ${token.credential.authorization ?? ''}`
})
