import { request } from 'node:http'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from '../../deployments/test/deploy-lab.js'

/** What an address answers; names below .localhost are this machine's, whatever its resolver says. */
async function textAt(url: string): Promise<string> {
  const { host, port } = new URL(url)
  return await new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, headers: { Host: host } }, answer => {
      let text = ''
      answer.on('data', chunk => {
        text += chunk
      })
      answer.on('error', reject)
      answer.on('end', () => resolve(text))
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

test('what was first deployed while domains were off is served by its name once they are on, at the port of its image', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const dockerfile = 'FROM node:20\nWORKDIR /app\nCOPY . .\nEXPOSE 3000\nCMD ["node", "server.js"]\n'
  const web = await lab.application('web', sample('v0', 'other-port', dockerfile), { container_port: null })
  await lab.k.disable('domains', { cascade: true })
  t.match(await web.deployed(), { status: 'success' })
  for (const plugin of ['domains', 'proxy-forwarder']) await lab.k.enable(plugin)
  const client = await lab.k.as.session()
  const address = await until(async () => {
    const { body } = await client.get(`${web.path}/addresses`)
    return body[0]?.url as string | undefined
  }, 'an address by its name')
  const text = await until(async () => {
    const answer = await textAt(address)
    return /not running/.test(answer) ? undefined : answer
  }, 'that it is served')
  t.equal(text, 'v0')
})
