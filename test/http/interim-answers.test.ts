import { request } from 'node:http'
import { guardAnswer } from 'busbar/sdk/http1'
import { type Test, test } from 'tap'
import { endlessInterimServer, interimServer, unaskedUpgrade } from '../../lab/interim-answers.js'

const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'

async function ask(t: Test, port: number) {
  const heard = { interim: 0, refusals: [] as string[], status: 0 }
  const outgoing = request({ host: '127.0.0.1', port, agent: false })
  t.teardown(() => outgoing.destroy())
  outgoing.on('error', () => {})
  guardAnswer(outgoing, fault => heard.refusals.push(fault))
  outgoing.on('information', () => heard.interim++)
  outgoing.on('response', answer => {
    heard.status = answer.statusCode ?? 0
    answer.resume()
  })
  outgoing.end()
  await new Promise(resolve => outgoing.once('close', resolve))
  return heard
}

test('a request whose interim answers do not end is given up, and no more of them is parsed', async t => {
  t.same(await ask(t, await endlessInterimServer(t)), { interim: 21, refusals: ['interim'], status: 0 })
  t.same(await ask(t, await interimServer(t, 2_000, final)), {
    interim: 21,
    refusals: ['interim'],
    status: 0
  })
})

test('the answer after a few interim ones is taken', async t => {
  t.same(await ask(t, await interimServer(t, 20, final)), { interim: 20, refusals: [], status: 200 })
})

test('a change of protocols that nobody asked for is no answer, whatever came before it', async t => {
  t.same(await ask(t, await interimServer(t, 0, unaskedUpgrade)), {
    interim: 0,
    refusals: ['none'],
    status: 0
  })
  t.same(await ask(t, await interimServer(t, 3, unaskedUpgrade)), {
    interim: 3,
    refusals: ['none'],
    status: 0
  })
})

test('a request that fails by an error is not refused as well', async t => {
  t.same(await ask(t, 1), { interim: 0, refusals: [], status: 0 })
})
