import { request } from 'node:http'
import { type TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from '../../deployments/test/deploy-lab.js'

/** One request by a hostname, as a browser makes it. */
async function visit(
  url: string,
  method = 'GET'
): Promise<{ readonly status: number; readonly text: string }> {
  const { host, hostname, port, pathname } = new URL(url)
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      // Names below .localhost are this machine's, whatever its resolver says.
      { host: '127.0.0.1', port, path: pathname, method, headers: { Host: host, 'X-Asked': hostname } },
      answer => {
        let text = ''
        answer.on('data', chunk => {
          text += chunk
        })
        answer.on('error', reject)
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
      }
    )
    outgoing.on('error', reject)
    outgoing.end(method === 'POST' ? 'x'.repeat(2000) : undefined)
  })
}

test('a name works from the first deploy, and no request by it fails over further ones', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const client = async (): Promise<TestClient> => await lab.k.as.session()
  const web = await lab.application('web', sample('v0'))
  const addresses = async (): Promise<string[]> =>
    ((await (await client()).get(`${web.path}/addresses`)).body as Array<{ url: string }>).map(
      ({ url }) => url
    )
  t.same(await addresses(), [], 'none before the first deploy')
  t.match(await web.deployed(), { status: 'success' })
  const [own = ''] = await addresses()
  t.match(own, /^http:\/\/web-lab-[a-z0-9]+\.localhost:\d+\/$/)
  t.same(await visit(own), { status: 200, text: 'v0' })

  const added = await (await client()).post(`${web.path}/domains`, {
    hostname: 'shop.example.com',
    path: '/in'
  })
  t.equal(added.status, 201)
  const named = (await addresses())[1] ?? ''
  t.match(named, /^http:\/\/shop\.example\.com:\d+\/in$/)
  t.same(await visit(named), { status: 200, text: 'v0' }, 'a domain is served when it was answered')

  let isOver = false
  let served = 0
  const failures: string[] = []
  const visitors = Array.from({ length: 4 }, async (_, index) => {
    while (!isOver) {
      await visit(index < 2 ? own : named, index % 2 === 0 ? 'GET' : 'POST').then(
        ({ status, text }) => {
          if (status === 200 && /^v\d+$/.test(text)) served += 1
          else failures.push(`${status} ${text}`)
        },
        (error: Error) => failures.push(error.message)
      )
    }
  })
  for (let round = 1; round <= 2; round += 1) {
    await web.push(sample(`v${round}`))
    t.equal((await web.deployed()).status, 'success')
    t.same(await visit(own), { status: 200, text: `v${round}` })
    t.same(await visit(named), { status: 200, text: `v${round}` })
  }
  isOver = true
  await Promise.all(visitors)
  t.same(failures, [])
  t.ok(served > 100, `${served} requests served`)
  const switched = await until(async () => {
    const { body } = await (await client()).get(`${web.path}/deployments?limit=2`)
    return body[1].switch_failed !== null && body[1]
  }, 'what became of the requests during the first switch')
  t.match(switched, { switch_failed: 0, switch_served: Number })

  t.equal((await (await client()).post(`${web.path}/stop`)).status, 200)
  t.match(await visit(own), { status: 503, text: /not running/ })
  t.equal((await (await client()).post(`${web.path}/start`)).status, 200)
  await until(async () => (await visit(own)).text === 'v2', 'that it answers again')

  await lab.restart()
  const after = await until(async () => {
    const [first] = await addresses()
    return first === undefined || first.includes('null') ? undefined : first
  }, 'that the proxy listens again')
  t.equal(new URL(after).hostname, new URL(own).hostname)
  t.same(await visit(after), { status: 200, text: 'v2' }, 'it is forwarded again after a restart')

  await (await client()).delete(web.path)
  await lab.k.runRemovalsNow()
  await until(
    async () => (await visit(after)).status === 404,
    'that nothing is served of a deleted application'
  )
})
