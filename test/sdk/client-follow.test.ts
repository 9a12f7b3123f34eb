/** Following a deployment with the client, over connections that break. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createClient } from 'busbar/client'
import { type Test, test } from 'tap'
import { requireEngine } from '../../lab/engine.js'
import { openLab, sample } from '../../plugins/deployments/test/deploy-lab.js'

/** It says thirty things in about six seconds. */
const talkative = (mark: string): string =>
  `FROM node:20\nWORKDIR /app\nCOPY . .\nRUN for i in $(seq 30); do echo ${mark} $i; sleep 0.2; done\nCMD ["node", "server.js"]\n`

/** Stands between a client and the platform, and breaks what goes through it on demand. */
async function breakable(t: Test, port: number) {
  const open = new Set<Socket>()
  const server = createServer(near => {
    const far = connect(port, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near]
    ] as const) {
      open.add(one)
      one.pipe(other)
      one.on('error', () => {})
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const socket of open) socket.resetAndDestroy()
  }
  t.teardown(() => {
    cut()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut }
}

test('following a deployment', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const { email, password } = await lab.k.user('admin')
  const direct = await createClient({ url: lab.k.url }).signIn({ email, password })
  const begin = async (mark: string) => {
    const app = await lab.application(mark, sample('one', 'ok', talkative(mark)))
    return await direct.applications.deploy({ id: app.id, project_id: lab.projectId })
  }
  const recorded = (log: string | null): string[] =>
    (log ?? '').split('\n').flatMap(line => (line === '' ? [] : [(JSON.parse(line) as { msg: string }).msg]))

  await t.test('every line comes once and in order, however often the connection breaks', async t => {
    const { url, cut } = await breakable(t, lab.k.port)
    const person = await createClient({ url }).signIn({ email, password })
    const started = await begin('broken')
    const lines: string[] = []
    const statuses: string[] = []
    let cuts = 0
    for await (const event of person.deployments.follow(started)) {
      if (event.type === 'status') {
        statuses.push(event.status)
        if (event.deployment !== undefined) t.same(lines, recorded(event.deployment.build_logs))
        continue
      }
      lines.push(event.msg)
      if (/broken (5|12|20)$/.test(event.msg)) {
        cuts++
        cut()
      }
    }
    t.ok(cuts >= 3, `it broke ${cuts} times`)
    t.equal(lines.filter(line => /^broken \d+$/.test(line)).length, 30)
    t.equal(statuses.at(-1), 'success')
    t.ok(statuses.length >= 2, statuses.join())
  })

  await t.test('waiting ends with the deployment, with its time, or with who waits', async t => {
    const started = await begin('waited')
    await t.rejects(direct.deployments.wait(started, { timeoutMs: 300 }), {
      name: 'TimeoutError',
      message: /is still \w+ after 0.3 s/
    })
    const gone = new AbortController()
    const left = direct.deployments.wait(started.id, { signal: gone.signal, onLog: () => gone.abort() })
    await t.rejects(left, { name: 'AbortError' })
    const lines: string[] = []
    const ended = await direct.deployments.wait(started.id, { onLog: line => lines.push(line.msg) })
    t.equal(ended.status, 'success')
    t.same(lines, recorded(ended.build_logs))
  })

  await t.test('one that fails says why, and what helps', async t => {
    const app = await lab.application('bad', sample('one', 'ok', 'FROM node:20\nRUN exit 3\n'))
    const started = await direct.applications.deploy({ id: app.id, project_id: lab.projectId })
    let last = ''
    for await (const event of direct.deployments.follow(started)) last = event.text
    t.match(last, /^failed: ./)
    await t.rejects(direct.deployments.wait('5b0c8a52-1d5e-4b1e-8a64-1f0f3b1c9d11'), { code: 'E_NOT_FOUND' })
  })
})
